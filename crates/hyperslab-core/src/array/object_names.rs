//! The path of each object of a file, keyed by what references to it contain.

use std::collections::BTreeMap;

/// Longer paths are not built, because links can nest without end.
const MOST_PATH_NBYTES: usize = 64 << 10;

/// The first name that leads to each object, and the group with that name. Empty for a file without references.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectNames(BTreeMap<u64, Option<Name>>);

#[derive(Clone, Debug, PartialEq)]
struct Name {
    group: u64,
    name: String,
}

impl ObjectNames {
    /// The root object.
    pub fn insert_root(&mut self, object: u64) {
        self.0.insert(object, None);
    }

    /// Adds an object's name in a group, unless the object has a name already.
    pub fn insert(&mut self, object: u64, group: u64, name: &str) {
        self.0.entry(object).or_insert_with(|| Some(Name { group, name: name.to_owned() }));
    }

    /// Whether no object has a name. This is so for anything made of a file with references, but not for the file
    /// itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The path from the root, with a slash before every name; `None` for an object that no link leads to.
    pub fn path(&self, object: u64) -> Option<String> {
        let (mut names, mut nbytes, mut object) = (Vec::new(), 0, object);
        while let Some(Name { group, name }) = self.0.get(&object)? {
            nbytes += name.len() + 1;
            if nbytes > MOST_PATH_NBYTES {
                return None;
            }
            names.push(name.as_str());
            object = *group;
        }
        names.reverse();
        Some(format!("/{}", names.join("/")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_counts_and_circles_end() {
        let mut names = ObjectNames::default();
        names.insert_root(8);
        names.insert(20, 8, "g");
        names.insert(30, 20, "x");
        names.insert(30, 8, "later");
        names.insert(8, 20, "root");
        names.insert(40, 50, "a");
        names.insert(50, 40, "b");
        let path = |object| names.path(object);
        assert_eq!([path(8), path(20)], [Some("/".to_owned()), Some("/g".to_owned())]);
        assert_eq!([path(30), path(31)], [Some("/g/x".to_owned()), None]);
        assert_eq!(path(40), None);
    }
}
