//! What the files of a collection have in common: the arrays of each path, and which of them have equal descriptions.
//!
//! Thousands of files usually repeat a few descriptions. To decide how files are combined, it is enough to look at each
//! kind once.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use crate::array::{Array, Attribute, Link, Tree};

/// How files are concatenated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Along {
    /// Along the axis with this name.
    Dimension(String),
    /// Along the axis with this number, in every array that has it.
    Axis(usize),
    /// Not at all: each array is in one file, or equal in all.
    Nothing,
}

/// The arrays of one path in several files. The columns have one entry for each file that has the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterparts {
    /// The path, from the root, with a slash before each name.
    pub path: String,
    /// Numbers of the files.
    pub files: Vec<usize>,
    /// The array numbers in these files.
    pub arrays: Vec<usize>,
    /// Kinds. Arrays have the same kind if they differ only in the length along the axis and in where their chunks are.
    /// The first kind is 0.
    pub kinds: Vec<usize>,
    /// The axis along which they are concatenated, if the array has it.
    pub axes: Vec<Option<usize>>,
    /// The length of that axis.
    pub lengths: Vec<Option<u64>>,
}

/// The groups, as path, file and number, from the first file that has each; and the arrays. Both are in the files'
/// order.
pub fn counterparts(
    trees: &[&Tree],
    along: &Along,
    ignored: &[&str],
) -> (Vec<(String, usize, usize)>, Vec<Counterparts>) {
    let mut collected = Collected::new(trees, along, ignored);
    for (file, tree) in trees.iter().enumerate() {
        for (path, node) in nodes(tree) {
            match node {
                Node::Group(number) => collected.add_group(path, file, number),
                Node::Array(number) => collected.add_array(path, file, number),
            }
        }
    }
    (collected.groups, collected.found)
}

#[derive(Clone, Copy)]
enum Node {
    Group(usize),
    Array(usize),
}

/// Visits every group of a file once, and every name of an array. Skips links to other files and dangling links.
fn nodes(tree: &Tree) -> Vec<(String, Node)> {
    let (mut found, mut seen) = (vec![("/".to_owned(), Node::Group(0))], HashSet::from([0]));
    let mut waiting = vec![(String::new(), 0)];
    while let Some((prefix, number)) = waiting.pop() {
        let links = tree.groups.get(number).map_or(&[][..], |group| &group.links);
        let mut inner = Vec::new();
        for (name, link) in links {
            let path = format!("{prefix}/{name}");
            match target(tree, number, link) {
                Some(Node::Array(array)) => found.push((path, Node::Array(array))),
                Some(Node::Group(group)) if seen.insert(group) => {
                    found.push((path.clone(), Node::Group(group)));
                    inner.push((path, group));
                }
                _ => {}
            }
        }
        waiting.extend(inner.into_iter().rev());
    }
    found
}

/// Where a link leads. Follows soft links, through each group at most once.
fn target(tree: &Tree, from: usize, link: &Link) -> Option<Node> {
    let mut node = match link {
        Link::Group(number) => return Some(Node::Group(*number)),
        Link::Array(number) => return Some(Node::Array(*number)),
        Link::Soft(path) if path.starts_with('/') => Node::Group(0),
        Link::Soft(_) => Node::Group(from),
        _ => return None,
    };
    let Link::Soft(path) = link else { return None };
    for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
        let Node::Group(group) = node else { return None };
        let links = &tree.groups.get(group)?.links;
        node = match links.iter().find(|(link, _)| link == name).map(|(_, link)| link)? {
            Link::Group(number) => Node::Group(*number),
            Link::Array(number) => Node::Array(*number),
            _ => return None,
        };
    }
    Some(node)
}

struct Collected<'t> {
    along: &'t Along,
    ignored: &'t [&'t str],
    trees: &'t [&'t Tree],
    groups: Vec<(String, usize, usize)>,
    known_groups: HashSet<String>,
    found: Vec<Counterparts>,
    /// Positions in `found`.
    positions: HashMap<String, usize>,
    /// For each path, by a hash of descriptions: one array of each kind, and the kind.
    kinds: Vec<HashMap<u64, Vec<(&'t Array, usize)>>>,
}

impl<'t> Collected<'t> {
    fn new(trees: &'t [&'t Tree], along: &'t Along, ignored: &'t [&'t str]) -> Self {
        Self {
            along,
            ignored,
            trees,
            groups: Vec::new(),
            known_groups: HashSet::new(),
            found: Vec::new(),
            positions: HashMap::new(),
            kinds: Vec::new(),
        }
    }

    fn add_group(&mut self, path: String, file: usize, number: usize) {
        if self.known_groups.insert(path.clone()) {
            self.groups.push((path, file, number));
        }
    }

    fn add_array(&mut self, path: String, file: usize, number: usize) {
        let Some(array) = self.trees.get(file).and_then(|tree| tree.arrays.get(number)) else { return };
        let position = match self.positions.entry(path) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let path = new.key().clone();
                let (files, arrays, kinds) = (Vec::new(), Vec::new(), Vec::new());
                let (axes, lengths) = (Vec::new(), Vec::new());
                self.found.push(Counterparts { path, files, arrays, kinds, axes, lengths });
                self.kinds.push(HashMap::new());
                *new.insert(self.found.len() - 1)
            }
        };
        let axis = self.along.axis_of(array);
        let kind = self.kind(position, array, axis);
        let Some(own) = self.found.get_mut(position) else { return };
        own.files.push(file);
        own.arrays.push(number);
        own.kinds.push(kind);
        own.axes.push(axis);
        own.lengths.push(axis.and_then(|axis| array.shape.as_ref()?.get(axis).copied()));
    }

    fn kind(&mut self, position: usize, array: &'t Array, axis: Option<usize>) -> usize {
        let Some(known) = self.kinds.get_mut(position) else { return 0 };
        let count = known.values().map(Vec::len).sum();
        let alike = known.entry(hash(array, self.ignored)).or_default();
        let same = alike.iter().find(|(other, _)| are_alike(array, other, axis, self.ignored));
        if let Some((_, kind)) = same {
            return *kind;
        }
        alike.push((array, count));
        count
    }
}

impl Along {
    fn axis_of(&self, array: &Array) -> Option<usize> {
        let ndim = array.shape.as_ref()?.len();
        let axis = match self {
            Self::Dimension(name) => array.dimensions.as_ref()?.iter().position(|own| own == name)?,
            Self::Axis(axis) => *axis,
            Self::Nothing => return None,
        };
        (axis < ndim).then_some(axis)
    }
}

fn attributes<'a>(array: &'a Array, ignored: &[&str]) -> impl Iterator<Item = &'a Attribute> {
    array.attributes.iter().filter(|attribute| !ignored.contains(&attribute.name.as_str()))
}

fn hash(array: &Array, ignored: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for attribute in attributes(array, ignored) {
        attribute.name.hash(&mut hasher);
        if let Ok(value) = &attribute.value {
            (&value.bytes, &value.heap).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn are_alike(one: &Array, other: &Array, axis: Option<usize>, ignored: &[&str]) -> bool {
    let lengths = |array: &Array| {
        let positions = array.shape.as_ref()?.iter().enumerate();
        Some(
            positions
                .map(|(position, &length)| if Some(position) == axis { 0 } else { length })
                .collect::<Vec<_>>(),
        )
    };
    one.element == other.element
        && one.dimensions == other.dimensions
        && one.fill == other.fill
        && lengths(one) == lengths(other)
        && attributes(one, ignored).eq(attributes(other, ignored))
}
