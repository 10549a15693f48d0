//! Paths in a tree: where they lead, and the path of every array.

use hyperslab_core::{Link, Tree, Unreadable};

/// The maximum number of links on a path.
pub(crate) const MOST_HOPS: usize = 32;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Group(usize),
    Array(usize),
}

/// The parts of a path: names of links.
pub(crate) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

/// The link of a group with this name.
pub(crate) fn link<'t>(tree: &'t Tree, group: usize, name: &str) -> Option<&'t Link> {
    let links = tree.groups.get(group).map_or(&[][..], |group| &group.links);
    links.iter().find(|(link, _)| link == name).map(|(_, link)| link)
}

/// The array at a path from the root. Follows no links except names.
pub(crate) fn array_at(tree: &Tree, path: &str) -> Option<usize> {
    let mut names = names(path).peekable();
    let mut group = 0;
    while let Some(name) = names.next() {
        match link(tree, group, name)? {
            Link::Group(number) => group = *number,
            Link::Array(number) if names.peek().is_none() => return Some(*number),
            _ => return None,
        }
    }
    None
}

/// What a path from a group leads to, following soft links; `None` if there is nothing.
pub(crate) fn find(tree: &Tree, from: usize, path: &str, hops: usize) -> Result<Option<Node>, Unreadable> {
    if hops > MOST_HOPS {
        return Ok(None); // a circle of links leads nowhere
    }
    let mut here = Node::Group(if path.starts_with('/') { 0 } else { from });
    for name in names(path) {
        let Node::Group(group) = here else { return Ok(None) };
        here = match link(tree, group, name) {
            None => return Ok(None),
            Some(Link::Group(number)) => Node::Group(*number),
            Some(Link::Array(number)) => Node::Array(*number),
            Some(Link::Soft(path)) => match find(tree, group, path, hops + 1)? {
                Some(node) => node,
                None => return Ok(None),
            },
            Some(Link::External { file, .. }) => {
                return Err(Unreadable::unsupported(format!("a path over an external link to {file}")));
            }
            Some(Link::Unreadable(reason)) => return Err(reason.clone()),
        };
    }
    Ok(Some(here))
}

/// The path of every array, by array number: the first one that a walk through the groups finds, without a leading
/// slash.
pub(crate) fn array_paths(tree: &Tree) -> Vec<Option<String>> {
    let mut paths = vec![None; tree.arrays.len()];
    let mut is_met = vec![false; tree.groups.len()];
    let mut waiting = vec![(String::new(), 0)];
    while let Some((prefix, number)) = waiting.pop() {
        let Some(group) = tree.groups.get(number) else { continue };
        if std::mem::replace(&mut is_met[number], true) {
            continue; // groups may form a circle
        }
        for (name, link) in &group.links {
            match link {
                Link::Group(number) => waiting.push((format!("{prefix}{name}/"), *number)),
                Link::Array(number) => {
                    if let Some(path @ None) = paths.get_mut(*number) {
                        *path = Some(format!("{prefix}{name}"));
                    }
                }
                _ => {}
            }
        }
    }
    paths
}
