//! Which objects of a file are read: all of them, or those that patterns of names select.

use crate::error::Error;

/// Patterns of names between slashes, starting at the root. `*` stands for any one name; `**` for any number of names,
/// including none, and at the end of a pattern for everything below. If a pattern spells out a name, the `*` or `**` of
/// another pattern does not match it, but a `**` before it in the same pattern does: `**/x` selects every `x`, also
/// below another.
#[derive(Debug, Default)]
pub(crate) struct Scope(Vec<Vec<String>>);

/// The part of a scope below an object: everything, or the patterns that led there and how far each has matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// Everything below.
    All,
    /// The rest of these patterns.
    Rest(Vec<(usize, usize)>),
}

impl Followed {
    /// Whether nothing below is read.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Rest(rest) if rest.is_empty())
    }
}

const ANY: &str = "*";
const ANY_DEPTH: &str = "**";

impl Scope {
    /// Everything, if there are no patterns.
    pub fn new(patterns: &[String]) -> Self {
        let names = |pattern: &String| {
            pattern.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        Self(patterns.iter().map(names).collect())
    }

    /// What is read below the root.
    pub fn root(&self) -> Followed {
        if self.0.is_empty() {
            return Followed::All;
        }
        Followed::Rest((0..self.0.len()).map(|pattern| (pattern, 0)).collect())
    }

    /// What is read below the object that a group calls `name`; `None` if the object is not read at all.
    pub fn below(&self, group: &Followed, name: &str) -> Option<Followed> {
        let Followed::Rest(rest) = group else { return Some(Followed::All) };
        let spelled: Vec<_> = rest.iter().copied().filter(|&at| self.spelled(at, name).is_some()).collect();
        if !spelled.is_empty() {
            let onward = spelled
                .iter()
                .copied()
                .filter(|&(pattern, position)| self.name(pattern, position) == Some(ANY_DEPTH));
            let behind = spelled.iter().filter_map(|&at| self.spelled(at, name));
            return Some(self.pruned(onward.chain(behind).collect()));
        }
        let mut found = Vec::new();
        for &(pattern, position) in rest {
            match self.name(pattern, position) {
                Some(ANY) => found.push((pattern, position.saturating_add(1))),
                Some(ANY_DEPTH) if self.name(pattern, position.saturating_add(1)).is_none() => {
                    return Some(Followed::All);
                }
                Some(ANY_DEPTH) => found.push((pattern, position)),
                _ => {}
            }
        }
        (!found.is_empty()).then(|| self.pruned(found))
    }

    fn name(&self, pattern: usize, position: usize) -> Option<&str> {
        self.0.get(pattern)?.get(position).map(String::as_str)
    }

    /// Where a pattern continues after `name`, if it spells out that name.
    fn spelled(&self, (pattern, position): (usize, usize), name: &str) -> Option<(usize, usize)> {
        let position = match self.name(pattern, position)? {
            ANY_DEPTH => position.checked_add(1)?,
            _ => position,
        };
        (self.name(pattern, position)? == name).then_some((pattern, position.checked_add(1)?))
    }

    /// Drops the patterns that have ended.
    fn pruned(&self, mut rest: Vec<(usize, usize)>) -> Followed {
        rest.retain(|&(pattern, position)| self.name(pattern, position).is_some());
        Followed::Rest(rest)
    }
}

/// Refuses so many patterns that matching them would take long. No real use needs them.
pub(crate) fn check(patterns: &[String]) -> Result<(), Error> {
    const MOST: usize = 1 << 12;
    if patterns.len() <= MOST {
        return Ok(());
    }
    Err(Error::TooMany { what: "patterns of names", limit: MOST as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(patterns: &[&str], path: &str) -> Option<Followed> {
        let scope = Scope::new(&patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>());
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(scope.root(), |at, name| scope.below(&at, name))
    }

    #[test]
    fn no_pattern_is_everything() {
        assert_eq!(leads(&[], "a/b"), Some(Followed::All));
    }

    #[test]
    fn patterns_end_where_they_say() {
        let table = ["data/versions/*"];
        assert!(leads(&table, "data/versions/v1").is_some_and(|followed| followed.is_end()));
        assert_eq!(leads(&table, "data/versions/v1/x"), None);
        assert_eq!(leads(&table, "data/x"), None);
        assert_eq!(leads(&["a/**"], "a/b/c"), Some(Followed::All));
    }

    #[test]
    fn what_is_spelled_out_is_no_wildcard() {
        let version = ["data/versions/v1/**", "data/**/raw"];
        assert_eq!(leads(&version, "data/versions/v1/x"), Some(Followed::All));
        assert_eq!(leads(&version, "data/versions/v2"), None);
        assert!(leads(&version, "data/x/raw").is_some());
        assert!(leads(&version, "data/g/x/raw").is_some());
        assert_eq!(leads(&version, "other"), None);
    }
    #[test]
    fn a_name_is_found_below_another_of_it() {
        let every = ["data/**/raw", "data/versions/v1"];
        assert!(leads(&every, "data/raw/raw").is_some());
        assert!(leads(&every, "data/x/raw/y/raw").is_some());
        assert_eq!(leads(&every, "data/versions/raw"), None);
    }
}
