//! HDF5's second B-tree of chunks (`H5B2*.c`). Its inner nodes hold chunks too, and before a full node is split, it
//! shares with its neighbours.

use std::ops::Range;

use crate::index::block::{Block, HEADER, Inserted};

const NODE_NBYTES: u64 = 2048;
/// Signature, version, kind; checksum.
const PREFIX_NBYTES: u64 = 10;
const ADDRESS_NBYTES: u64 = 8;
/// Deeper than any tree can be.
const MOST_DEPTH: usize = 16;
/// How often nodes share before one is split after all.
const MOST_SHARINGS: u32 = 2;

#[derive(Clone, Debug)]
pub(crate) struct Btree2 {
    /// How many chunks a node can hold, by its height above the leaves.
    most: Vec<usize>,
    /// `root` is the number of the root node. The block of node `n` is `n + 1`, after the header.
    nodes: Vec<Node>,
    root: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    height: usize,
    chunks: Vec<u64>,
    /// One more than there are chunks; empty for a leaf.
    children: Vec<usize>,
}

/// A node on the way to a chunk, and the position in it of the chunk, or of the child that leads to it.
type Step = (usize, usize);

impl Btree2 {
    pub const HEADER_NBYTES: u64 = 38;

    /// Without chunks. Each chunk takes this many bytes of a node.
    pub fn new(record_nbytes: u64) -> Self {
        let leaf = (NODE_NBYTES - PREFIX_NBYTES) / record_nbytes;
        // With each child, a node stores how many chunks the child has itself, and how many including all below it.
        let (count_nbytes, mut sum_nbytes, mut below) = (bytes_of(leaf), 0, leaf);
        let mut most = vec![leaf];
        for _ in 1..MOST_DEPTH {
            let child_nbytes = ADDRESS_NBYTES + count_nbytes + sum_nbytes;
            let inner = (NODE_NBYTES - PREFIX_NBYTES - child_nbytes) / (record_nbytes + child_nbytes);
            below = (inner + 1).saturating_mul(below).saturating_add(inner);
            sum_nbytes = bytes_of(below);
            most.push(inner);
        }
        let most = most.into_iter().filter_map(|count| usize::try_from(count).ok()).collect();
        Self { most, nodes: Vec::new(), root: 0 }
    }

    /// Now with `count` chunks, inserted in row-major order.
    pub fn fill(&mut self, count: u64) {
        for chunk in 0..count {
            let mut last = self.root;
            while let Some(&child) = self.nodes.get(last).and_then(|node| node.children.last()) {
                last = child;
            }
            match self.nodes.get_mut(last) {
                Some(leaf) if leaf.chunks.len() < self.most[0] => leaf.chunks.push(chunk),
                _ => drop(self.insert(chunk)),
            }
        }
    }

    /// The blocks that a lookup visits, starting at the header, and other chunks whose lookup visits the same.
    pub fn path(&self, chunk: u64) -> (Vec<Block>, Range<u64>) {
        let mut path = vec![Block::whole(HEADER, Self::HEADER_NBYTES)];
        let steps = self.steps(chunk);
        path.extend(steps.iter().map(|&(node, _)| block(node)));
        let last = steps.last().map(|&(node, _)| &self.nodes[node]);
        let same = match last.map(|node| (node.chunks.first(), node.chunks.last())) {
            Some((Some(&first), Some(&last_chunk))) if steps.len() == self.height() + 1 => {
                first..last_chunk + 1
            }
            _ => 0..0,
        };
        (path, same)
    }

    /// The block with the location of a chunk.
    pub fn holder(&self, chunk: u64) -> Option<u64> {
        self.steps(chunk).last().map(|&(node, _)| block(node).id)
    }

    /// Inserts a chunk. It must not be in the tree yet.
    pub fn insert(&mut self, chunk: u64) -> Inserted {
        let mut inserted = Inserted { changed: vec![HEADER], ..Inserted::default() };
        if self.nodes.is_empty() {
            self.nodes.push(Node { chunks: vec![chunk], ..Node::default() });
            inserted.created.push(block(0));
            return inserted;
        }
        let steps = self.steps(chunk);
        inserted.needed.extend(steps.iter().map(|&(node, _)| block(node)));
        inserted.changed.extend(steps.iter().map(|&(node, _)| block(node).id));
        if let Some(&(leaf, position)) = steps.last()
            && self.nodes[leaf].chunks.len() < self.most[0]
        {
            self.nodes[leaf].chunks.insert(position, chunk);
            return inserted;
        }
        let inner = &steps[..steps.len() - 1];
        let lowest = inner.iter().rev().find(|step| !self.may_overflow(**step));
        if lowest.is_none() && self.is_full(self.root) {
            self.grow(&mut inserted);
        }
        self.insert_below(lowest.map_or(self.root, |&(node, _)| node), chunk, &mut inserted);
        inserted
    }

    fn height(&self) -> usize {
        self.nodes.get(self.root).map_or(0, |node| node.height)
    }

    fn is_full(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.chunks.len() == self.most[node.height]
    }

    /// Whether a full node would overflow if its full child at `position` were split.
    fn may_overflow(&self, (node, position): Step) -> bool {
        let Node { chunks, children, height } = &self.nodes[node];
        let nearly_full = 2 * self.most[height - 1] - 1;
        let together = |left: usize| {
            self.nodes[children[left]].chunks.len() + self.nodes[children[left + 1]].chunks.len()
                >= nearly_full
        };
        self.is_full(node)
            && ((position > 0 && together(position - 1)) || (position < chunks.len() && together(position)))
    }

    /// The nodes from the root to a chunk, or to the leaf where it would be.
    fn steps(&self, chunk: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut next = (!self.nodes.is_empty()).then_some(self.root);
        while let Some(number) = next {
            let node = &self.nodes[number];
            let found = node.chunks.binary_search(&chunk);
            let position = found.unwrap_or_else(|position| position);
            steps.push((number, position));
            next = if found.is_ok() { None } else { node.children.get(position).copied() };
        }
        steps
    }

    /// Inserts into a node that has room, or whose children have. Each full child on the way makes room before it is
    /// visited.
    fn insert_below(&mut self, number: usize, chunk: u64, inserted: &mut Inserted) {
        inserted.needed.push(block(number));
        inserted.changed.push(block(number).id);
        let position_of = |node: &Node| node.chunks.partition_point(|&other| other < chunk);
        let mut position = position_of(&self.nodes[number]);
        if self.nodes[number].height == 0 {
            self.nodes[number].chunks.insert(position, chunk);
            return;
        }
        let mut sharings = 0;
        while self.is_full(self.nodes[number].children[position]) {
            self.make_room(number, position, sharings < MOST_SHARINGS, inserted);
            position = position_of(&self.nodes[number]);
            sharings += 1;
        }
        self.insert_below(self.nodes[number].children[position], chunk, inserted);
    }

    /// Makes room in a full child: it shares with a neighbour that has room, or it is split.
    fn make_room(&mut self, number: usize, position: usize, may_share: bool, inserted: &mut Inserted) {
        let children = &self.nodes[number].children;
        let has_room = |position: usize| may_share && !self.is_full(children[position]);
        let last = children.len() - 1;
        let length = |position: usize| self.nodes[children[position]].chunks.len();
        if position == 0 || position == last {
            let (left, beside) = if position == 0 { (0, 1) } else { (last - 1, last - 1) };
            if !has_room(beside) {
                return self.split(number, position, inserted);
            }
            let (one, other) = (length(left), length(left + 1));
            let half = usize::midpoint(one, other);
            let kept = if one < other { one + other - half } else { half };
            self.share(number, left, &[kept, one + other - kept], inserted);
        } else if has_room(position + 1) || has_room(position - 1) {
            let sum = length(position - 1) + length(position) + length(position + 1);
            let middle = sum / 3;
            let left = (sum - middle) / 2;
            self.share(number, position - 1, &[left, middle, sum - middle - left], inserted);
        } else {
            self.split(number, position, inserted);
        }
    }

    /// Distributes the chunks of children, starting at `first`, so each gets the given number. The chunks between them
    /// are in the node above.
    fn share(&mut self, number: usize, first: usize, lengths: &[usize], inserted: &mut Inserted) {
        let shared = self.nodes[number].children[first..first + lengths.len()].to_vec();
        let between = self.nodes[number].chunks[first..first + lengths.len() - 1].to_vec();
        let (mut chunks, mut children) = (Vec::new(), Vec::new());
        for (position, (&child, &length)) in shared.iter().zip(lengths).enumerate() {
            inserted.needed.push(block(child));
            let node = &mut self.nodes[child];
            // Of three children, the middle one is full and gives.
            if node.chunks.len() != length || position == 1 {
                inserted.changed.push(block(child).id);
            }
            chunks.append(&mut node.chunks);
            chunks.extend(between.get(position));
            children.append(&mut node.children);
        }
        let (mut chunks, mut children) = (chunks.into_iter(), children.into_iter());
        for (position, (&child, &length)) in shared.iter().zip(lengths).enumerate() {
            self.nodes[child].chunks = chunks.by_ref().take(length).collect();
            self.nodes[child].children = children.by_ref().take(length + 1).collect();
            if let Some(chunk) = chunks.next() {
                self.nodes[number].chunks[first + position] = chunk;
            }
        }
    }

    /// Moves the later half of a child to a new child after it. The chunk between them goes to the node above.
    fn split(&mut self, number: usize, position: usize, inserted: &mut Inserted) {
        let child = self.nodes[number].children[position];
        inserted.needed.push(block(child));
        inserted.changed.push(block(child).id);
        let node = &mut self.nodes[child];
        let half = node.chunks.len() / 2;
        let chunks = node.chunks.split_off(half + 1);
        let between = node.chunks.pop();
        let children = if node.height > 0 { node.children.split_off(half + 1) } else { Vec::new() };
        let new = Node { height: node.height, chunks, children };
        let twin = self.nodes.len();
        self.nodes.push(new);
        let above = &mut self.nodes[number];
        above.children.insert(position + 1, twin);
        if let Some(chunk) = between {
            above.chunks.insert(position, chunk);
        }
        inserted.created.push(block(twin));
    }

    /// Puts a new root above the old one, and splits the old one.
    fn grow(&mut self, inserted: &mut Inserted) {
        let node = Node { height: self.height() + 1, chunks: Vec::new(), children: vec![self.root] };
        self.root = self.nodes.len();
        self.nodes.push(node);
        inserted.created.push(block(self.root));
        self.split(self.root, 0, inserted);
    }
}

fn block(node: usize) -> Block {
    Block::whole(node as u64 + 1, NODE_NBYTES)
}

/// How many bytes a number takes.
fn bytes_of(number: u64) -> u64 {
    u64::from(number.max(1).ilog2() / 8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks_below(tree: &Btree2, number: usize, found: &mut Vec<u64>) {
        let node = &tree.nodes[number];
        assert!(node.chunks.len() <= tree.most[node.height]);
        assert_eq!(node.children.len(), if node.height == 0 { 0 } else { node.chunks.len() + 1 });
        for position in 0..=node.chunks.len() {
            if let Some(&child) = node.children.get(position) {
                assert_eq!(tree.nodes[child].height + 1, node.height);
                chunks_below(tree, child, found);
            }
            found.extend(node.chunks.get(position));
        }
    }

    #[test]
    fn nodes_of_arrays_of_two_axes() {
        assert_eq!(Btree2::new(24).most[..3], [84, 61, 57]);
    }

    #[test]
    fn every_chunk_stays_in_order_whatever_comes_first() {
        let count = 20_011; // prime
        for step in [1, 2, 7, 5003, 20_010] {
            let mut tree = Btree2::new(24);
            for position in 0..count {
                tree.insert(position * step % count);
            }
            let mut found = Vec::new();
            chunks_below(&tree, tree.root, &mut found);
            assert!(found.into_iter().eq(0..count), "{step}");
        }
    }

    #[test]
    fn filling_is_inserting_in_order() {
        let (mut filled, mut inserted) = (Btree2::new(24), Btree2::new(24));
        filled.fill(9000);
        (0..9000).for_each(|chunk| drop(inserted.insert(chunk)));
        for chunk in 0..9000 {
            assert_eq!(filled.path(chunk), inserted.path(chunk));
        }
    }
}
