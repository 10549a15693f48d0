//! HDF4's skipping Huffman coding: one code tree for each byte of an element, which adapts after every byte.
//!
//! From D. W. Jones, "Application of splay trees to data compression", CACM 31 (1988). The tree starts balanced. After
//! each byte, encoder and decoder halve that byte's path to the root by semi-rotations.

use super::buffer::Buffer;
use super::reader::Bits;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "skipping-huffman";
/// The number of different bytes, and the number of the first leaf.
const LEAF: u16 = 256;
const ROOT: u16 = 0;
/// No encoder writes wider elements.
const MAX_ELEMENT_NBYTES: u32 = 1024;

/// A tree. Inner nodes are numbered from the root, 0; byte `b` is leaf `256 + b`.
#[derive(Clone)]
struct Tree {
    children: [[u16; 2]; LEAF as usize],
    parents: [u16; 2 * LEAF as usize],
}

impl Tree {
    /// Numbered as a heap that starts at node 1. Above it is HDF4's root, 0, whose other child is at first the root
    /// itself. Exchanges keep the root above all nodes, and every step down consumes a bit, so decoding ends.
    fn balanced() -> Self {
        let mut tree = Self { children: [[0; 2]; LEAF as usize], parents: [0; 2 * LEAF as usize] };
        for (node, children) in (0_u16..).zip(&mut tree.children) {
            *children = [2 * node, 2 * node + 1];
        }
        for (node, parent) in (0_u16..).zip(&mut tree.parents) {
            *parent = node / 2;
        }
        tree
    }

    /// Follows bits down to a leaf.
    fn read(&self, bits: &mut Bits<'_>) -> Option<u16> {
        let mut node = ROOT;
        while node < LEAF {
            node = self.children[usize::from(node)][usize::from(bits.take(1)? == 1)];
        }
        Some(node)
    }

    /// Moves a leaf up: for each pair of nodes above it, exchanges the child that it came from with the sibling of the
    /// other.
    fn splay(&mut self, leaf: u16) {
        let mut node = leaf;
        while node != ROOT {
            let parent = self.parents[usize::from(node)];
            if parent == ROOT {
                return;
            }
            let above = self.parents[usize::from(parent)];
            let [left, right] = self.children[usize::from(above)];
            let sibling = if parent == left { right } else { left };
            self.children[usize::from(above)] = if parent == left { [left, node] } else { [node, right] };
            let of_parent = &mut self.children[usize::from(parent)];
            let side = usize::from(of_parent[0] != node);
            of_parent[side] = sibling;
            self.parents[usize::from(node)] = above;
            self.parents[usize::from(sibling)] = parent;
            node = above;
        }
    }
}

/// Decodes as many bytes as the size allows. The parameter is the width of an element in bytes. Nothing marks the end of the data.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let [element_nbytes] = coded.numbers(CODEC)?;
    let nbytes = size.known(CODEC)?;
    if !(1..=MAX_ELEMENT_NBYTES).contains(&element_nbytes) {
        return Err(Error::Parameters { codec: CODEC, problem: "elements of an unsupported width" });
    }
    let mut trees = vec![Tree::balanced(); usize::try_from(element_nbytes).unwrap_or(1)];
    let mut bits = Bits::new(input);
    for element in out.space(nbytes)?.chunks_mut(trees.len()) {
        for (tree, byte) in trees.iter_mut().zip(element) {
            let leaf = tree.read(&mut bits);
            let leaf =
                leaf.ok_or(Error::Damaged { codec: CODEC, problem: "the encoded bits end too early" })?;
            tree.splay(leaf);
            *byte = u8::try_from(leaf - LEAF).unwrap_or(0); // a leaf is below 512
        }
    }
    Ok(nbytes)
}
