//! HDF5's first B-tree of chunks: its nodes, given the order in which chunks came.
//!
//! A node has room for 64 chunks. When a full node is split, 57 of them stay if it is the last of its level, 6 if it is
//! the first, and 32 otherwise (`H5B.c`, with the default split ratios).

use std::ops::Range;

use crate::index::block::{Block, Inserted};

const MOST: u64 = 64;
const KEPT_BY_LAST: u64 = 57;
const KEPT_BY_FIRST: u64 = 6;
const KEPT_BETWEEN: u64 = 32;

/// The number of a node. It stays the same while the tree exists.
pub(crate) type NodeId = u64;

#[derive(Clone, Debug)]
pub(crate) struct Btree {
    node_nbytes: u64,
    nodes: Nodes,
    /// The first chunk, and the last chunk that a lookup finds below the root: one step along every axis beyond the
    /// last chunk that was inserted from beyond.
    bounds: Option<(Vec<u64>, Vec<u64>)>,
}

#[derive(Clone, Debug)]
enum Nodes {
    /// All chunks of an array, inserted in row-major order. The tree follows from their number.
    RowMajor {
        count: u64,
    },
    Any(Tree),
}

#[derive(Clone, Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    level: u32,
    /// The first chunk of each child.
    chunks: Vec<u64>,
    /// The children; empty for a leaf.
    children: Vec<usize>,
    left: Option<usize>,
    right: Option<usize>,
}

/// What an insertion into a tree did.
#[derive(Debug, Default)]
struct Grown {
    /// Older nodes visited besides the path.
    beside: Vec<NodeId>,
    created: Vec<NodeId>,
    /// Older nodes that changed.
    changed: Vec<NodeId>,
}

impl Btree {
    /// Without chunks, for an array with this many axes.
    pub fn new(ndim: usize) -> Self {
        Self { node_nbytes: Self::node_nbytes(ndim), nodes: Nodes::Any(Tree::default()), bounds: None }
    }

    /// Now with all `count` chunks of an array, inserted in row-major order.
    pub fn fill(&mut self, count: u64, grid_shape: &[u64]) {
        if count > 0 {
            self.nodes = Nodes::RowMajor { count };
            self.bounds = Some((vec![0; grid_shape.len()], grid_shape.to_vec()));
        }
    }

    /// The number in this tree of a node that has another one in a tree of the same chunks in row-major order.
    pub fn renumbered(&self, node: NodeId) -> Option<NodeId> {
        let (level, position) = (node >> 48, node & ((1 << 48) - 1));
        let first = (0..=level).fold(position, |child, _| child * KEPT_BY_LAST);
        let mut path = self.positions(first);
        path.reverse();
        path.get(usize::try_from(level).ok()?).map(|&(node, _)| node)
    }

    /// Whether the tree follows from the number of chunks.
    pub fn is_row_major(&self) -> bool {
        matches!(self.nodes, Nodes::RowMajor { .. })
    }

    /// Bytes of a node, for an array with this many axes.
    pub fn node_nbytes(ndim: usize) -> u64 {
        let key_nbytes = 8 + 8 * (ndim as u64 + 1);
        24 + (MOST + 1) * key_nbytes + MOST * 8
    }

    /// A node as a block.
    pub fn block(&self, node: NodeId) -> Block {
        Block::whole(node, self.node_nbytes)
    }

    /// The nodes that a lookup visits, starting at the root.
    pub fn path(&self, chunk: u64, chunk_index: &[u64]) -> Vec<Block> {
        let Some((first, last)) = &self.bounds else { return Vec::new() };
        let is_outside = chunk_index < first.as_slice() || chunk_index > last.as_slice();
        let mut path: Vec<Block> =
            self.positions(chunk).into_iter().map(|(node, _)| self.block(node)).collect();
        if is_outside {
            path.truncate(1);
        }
        path
    }

    /// Other chunks around a chunk whose lookup visits the same nodes, if that is known without searching.
    pub fn same_path(&self, chunk: u64) -> Range<u64> {
        match self.nodes {
            Nodes::RowMajor { count } => {
                let last = nodes_above(count) - 1;
                let leaf = (chunk / KEPT_BY_LAST).min(last);
                leaf * KEPT_BY_LAST..if leaf == last { count } else { (leaf + 1) * KEPT_BY_LAST }
            }
            Nodes::Any(_) => 0..0,
        }
    }

    /// The location of a node: after which chunk, and after how many of the nodes created with it. `None` for the root,
    /// which existed before, and if the location is unknown.
    pub fn position(&self, node: NodeId) -> Option<(u64, u64)> {
        let Nodes::RowMajor { count } = self.nodes else { return None };
        let (level, position) = (node >> 48, node & ((1 << 48) - 1));
        let is_root = level + 1 == level_lengths(count).count() as u64;
        (!is_root).then(|| {
            // The first node of a level holds what the root held before it grew. It was created after its twin.
            let (position, moved) = if position == 0 { (1, 1) } else { (position, 0) };
            let chunk = (0..=level).fold(position, |child, _| child * KEPT_BY_LAST + MOST - KEPT_BY_LAST);
            (chunk, level + moved)
        })
    }

    /// The nodes that change when a chunk moves: its leaf, and each node above whose first chunk it is.
    pub fn holders(&self, chunk: u64) -> Vec<NodeId> {
        let mut is_first = true;
        let positions = self.positions(chunk).into_iter().rev();
        positions
            .take_while(|&(_, position)| std::mem::replace(&mut is_first, position == 0))
            .map(|(node, _)| node)
            .collect()
    }

    /// The nodes from the root to a leaf, each with the position of the child nearest to the chunk.
    fn positions(&self, chunk: u64) -> Vec<(NodeId, u64)> {
        match &self.nodes {
            Nodes::RowMajor { count } => row_major_path(*count, chunk),
            Nodes::Any(tree) => tree
                .path(chunk)
                .into_iter()
                .map(|(node, position)| (node as NodeId, position as u64))
                .collect(),
        }
    }

    /// Inserts a chunk. It must not be in the tree yet.
    pub fn insert(&mut self, chunk: u64, chunk_index: &[u64]) -> Inserted {
        let needed: Vec<NodeId> = self.positions(chunk).into_iter().map(|(node, _)| node).collect();
        let Nodes::Any(tree) = &mut self.nodes else { return Inserted::default() };
        let mut grown = tree.insert(chunk);
        let further: Vec<u64> = chunk_index.iter().map(|index| index + 1).collect();
        match &mut self.bounds {
            None => self.bounds = Some((chunk_index.to_vec(), further)),
            Some((_, last)) if chunk_index > last.as_slice() => {
                // All nodes on the way get the new end.
                *last = further;
                grown.changed.extend(&needed);
            }
            Some((first, _)) if chunk_index < first.as_slice() => *first = chunk_index.to_vec(),
            Some(_) => {}
        }
        Inserted {
            needed: needed.into_iter().chain(grown.beside).map(|node| self.block(node)).collect(),
            created: grown.created.into_iter().map(|node| self.block(node)).collect(),
            changed: grown.changed,
        }
    }
}

/// How many nodes hold `count` children that came in order.
fn nodes_above(count: u64) -> u64 {
    if count <= MOST { u64::from(count > 0) } else { 1 + (count - MOST).div_ceil(KEPT_BY_LAST) }
}

/// How many nodes each level has, starting at the leaves, for `count` chunks that came in order.
fn level_lengths(count: u64) -> impl Iterator<Item = u64> {
    let first = Some(nodes_above(count)).filter(|&length| length > 0);
    std::iter::successors(first, |&length| (length > 1).then(|| nodes_above(length)))
}

/// The range of counts around this one that have as many nodes.
pub(crate) fn same_node_count(count: u64) -> Range<u64> {
    match count.checked_sub(MOST + 1) {
        None => 1..MOST + 1,
        Some(beyond) => {
            let first = MOST + 1 + beyond / KEPT_BY_LAST * KEPT_BY_LAST;
            first..first + KEPT_BY_LAST
        }
    }
}

/// How many nodes there are for `count` chunks that came in order.
pub(crate) fn row_major_node_count(count: u64) -> u64 {
    level_lengths(count).sum()
}

fn node_id(level: u64, position: u64) -> NodeId {
    (level << 48) | position
}

/// The nodes from the root to a leaf, each with the position that leads to a chunk.
fn row_major_path(count: u64, chunk: u64) -> Vec<(NodeId, u64)> {
    let mut child = chunk;
    let mut path: Vec<(NodeId, u64)> = level_lengths(count)
        .zip(0..)
        .map(|(length, level)| {
            let node = (child / KEPT_BY_LAST).min(length - 1);
            let position = child - node * KEPT_BY_LAST;
            child = node;
            (node_id(level, node), position)
        })
        .collect();
    path.reverse();
    path
}

impl Tree {
    /// The nodes from the root to a leaf, each with the position of the child nearest to the chunk.
    fn path(&self, chunk: u64) -> Vec<(usize, usize)> {
        let mut path = Vec::new();
        let mut next = (!self.nodes.is_empty()).then_some(0);
        while let Some(number) = next {
            let node = &self.nodes[number];
            let position = node.chunks.partition_point(|&first| first <= chunk).saturating_sub(1);
            path.push((number, position));
            next = node.children.get(position).copied();
        }
        path
    }

    fn insert(&mut self, chunk: u64) -> Grown {
        let mut grown = Grown::default();
        if self.nodes.is_empty() {
            self.nodes.push(Node { chunks: vec![chunk], ..Node::default() });
            grown.created.push(0);
            return grown;
        }
        let mut path = self.path(chunk);
        let mut new = Some((chunk, None));
        while let (Some((number, position)), Some((first, child))) = (path.pop(), new) {
            grown.changed.push(number as NodeId);
            let goes_left = child.is_none() && first < self.nodes[number].chunks[position];
            new = self.insert_child(number, position, goes_left, first, child, &mut grown);
            if goes_left {
                for &(above, position) in &path {
                    if chunk < self.nodes[above].chunks[position] {
                        self.nodes[above].chunks[position] = chunk;
                        grown.changed.push(above as NodeId);
                    }
                }
            }
        }
        if let Some((first, Some(twin))) = new {
            self.grow(first, twin, &mut grown);
        }
        grown
    }

    /// Inserts a child beside the one at `position`. If that splits the node, the new node goes into the node above.
    fn insert_child(
        &mut self,
        number: usize,
        position: usize,
        goes_left: bool,
        first: u64,
        child: Option<usize>,
        grown: &mut Grown,
    ) -> Option<(u64, Option<usize>)> {
        let twin = (self.nodes[number].chunks.len() as u64 == MOST).then(|| self.split(number, grown));
        let kept = self.nodes[number].chunks.len();
        let (target, position) = match twin {
            Some(twin) if position >= kept => (twin, position - kept),
            _ => (number, position),
        };
        let position = if goes_left { position } else { position + 1 };
        let node = &mut self.nodes[target];
        node.chunks.insert(position, first);
        if let Some(child) = child {
            node.children.insert(position, child);
        }
        twin.map(|twin| (self.nodes[twin].chunks[0], Some(twin)))
    }

    fn split(&mut self, number: usize, grown: &mut Grown) -> usize {
        let twin = self.nodes.len();
        let node = &mut self.nodes[number];
        let kept = match (node.left, node.right) {
            (_, None) => KEPT_BY_LAST,
            (None, Some(_)) => KEPT_BY_FIRST,
            (Some(_), Some(_)) => KEPT_BETWEEN,
        };
        let kept = usize::try_from(kept).unwrap_or(0);
        let chunks = node.chunks.split_off(kept);
        let children = if node.children.is_empty() { Vec::new() } else { node.children.split_off(kept) };
        let right = node.right.replace(twin);
        let level = node.level;
        self.nodes.push(Node { level, chunks, children, left: Some(number), right });
        if let Some(right) = right {
            self.nodes[right].left = Some(twin);
            grown.beside.push(right as NodeId);
            grown.changed.push(right as NodeId);
        }
        grown.created.push(twin as NodeId);
        twin
    }

    /// The root keeps its number. Its contents move to a new node.
    fn grow(&mut self, first: u64, twin: usize, grown: &mut Grown) {
        let moved = self.nodes.len();
        let root = std::mem::take(&mut self.nodes[0]);
        self.nodes[0].level = root.level + 1;
        self.nodes[0].chunks = vec![root.chunks[0], first];
        self.nodes[0].children = vec![moved, twin];
        self.nodes[twin].left = Some(moved);
        self.nodes.push(root);
        grown.created.push(moved as NodeId);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(tree: &Btree) -> Vec<usize> {
        let Nodes::Any(tree) = &tree.nodes else { return Vec::new() };
        let mut leaves: Vec<&Node> = tree.nodes.iter().filter(|node| node.level == 0).collect();
        leaves.sort_by_key(|node| node.chunks[0]);
        leaves.iter().map(|node| node.chunks.len()).collect()
    }

    #[test]
    fn chunks_in_row_major_order_fill_57_of_64_positions() {
        let mut listed = Tree::default();
        for chunk in 0..9000 {
            listed.insert(chunk);
            assert_eq!(row_major_node_count(chunk + 1), listed.nodes.len() as u64);
            let same = same_node_count(chunk + 1);
            assert!(same.contains(&(chunk + 1)));
            assert_eq!(row_major_node_count(same.start), row_major_node_count(same.end - 1));
            for asked in [0, chunk / 3, chunk] {
                assert_eq!(row_major_path(chunk + 1, asked).len(), listed.path(asked).len());
            }
        }
        // Two chunks share a leaf in one form exactly if they do in the other.
        let leaf = |chunk| listed.path(chunk).last().map(|&(node, _)| node);
        let closed_leaf = |chunk| row_major_path(9000, chunk).pop().map(|(node, _)| node);
        for chunk in 1..9000 {
            let together = closed_leaf(chunk) == closed_leaf(chunk - 1);
            assert_eq!(together, leaf(chunk) == leaf(chunk - 1), "{chunk}");
        }
    }

    #[test]
    fn the_first_and_the_middle_leaf_split_elsewhere() {
        let mut tree = Btree::new(1);
        for chunk in (0..65).rev() {
            tree.insert(chunk, &[chunk]);
        }
        assert_eq!(shape(&tree), [58, 7], "the only leaf is the last one of its level");
        for chunk in 65..200 {
            tree.insert(chunk, &[chunk]);
        }
        assert_eq!(
            tree.path(200, &[200]).len(),
            1,
            "what is beyond the last chunk is not looked for below the root"
        );
    }
}
