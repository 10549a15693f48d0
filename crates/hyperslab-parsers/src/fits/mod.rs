//! FITS: images and tables, one array for each HDU.
//!
//! We follow the FITS Standard 4.0. Values are returned as stored: `BSCALE`, `BZERO`, `BLANK` (and `TSCALn`, `TZEROn`,
//! `TNULLn`) are attributes, even where they only make integers unsigned. Axes are in C order: `NAXIS1`, the fastest,
//! is last. An array gets its name from `EXTNAME` (with `EXTVER` if two arrays share it), otherwise it is `primary`,
//! `hdu1` and so on. A slash in a name becomes an underscore, because it would make a path.

mod cards;
mod compressed;
mod hdu;
mod image;
mod table;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]
mod tests;

use std::collections::HashSet;

use hyperslab_core::{Group, Link, Tree, Unreadable};

use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;
use cards::BLOCK;
use hdu::{Content, Hdu};

/// The tree of a FITS file: one group, an array for each HDU with data.
pub fn parse(pages: &mut Pages<'_>) -> Result<Tree, Error> {
    let file_length = pages.file_length();
    let mut tree = Tree { groups: vec![Group::default()], ..Tree::default() };
    let mut names = Names::default();
    let (mut offset, mut number) = (0, 0);
    while offset < file_length {
        let cards = match settle(pages, |pages| cards::read(pages, offset, number == 0)) {
            Ok(Some(cards)) => cards,
            Ok(None) => break, // special records, or padding after the last HDU (sections 3.5, 3.6)
            Err(error) if number == 0 || matches!(error, Error::Fetch(_)) => return Err(error),
            Err(error) => {
                let link = (format!("hdu{number}"), Link::Unreadable(error.into()));
                tree.groups.iter_mut().for_each(|root| root.links.push(link.clone()));
                break;
            }
        };
        let data_offset = offset.saturating_add(cards.header_nbytes);
        let data_nbytes = cards.data_nbytes();
        let hdu = Hdu { number, cards, data_offset };
        let content = content(pages, &hdu)?;
        add(&mut tree, &mut names, &hdu, content);
        let Some(next) = data_nbytes.and_then(|nbytes| next_header(data_offset, nbytes)) else { break };
        (offset, number) = (next, number + 1);
    }
    Ok(tree)
}

fn next_header(data_offset: u64, data_nbytes: u64) -> Option<u64> {
    data_offset.checked_add(data_nbytes.checked_next_multiple_of(BLOCK)?)
}

fn add(tree: &mut Tree, names: &mut Names, hdu: &Hdu, content: Content) {
    let Some(root) = tree.groups.first_mut() else { return };
    let name = names.give(hdu);
    match content.array {
        None => {
            if hdu.number == 0 {
                root.attributes = hdu.cards.attributes(&[]);
            }
        }
        Some(Ok(array)) => {
            root.links.push((name.clone(), Link::Array(tree.arrays.len())));
            tree.arrays.push(array);
        }
        Some(Err(reason)) => root.links.push((name.clone(), Link::Unreadable(reason))),
    }
    for (column, reason) in content.left_out {
        root.links.push((format!("{name}.{column}"), Link::Unreadable(reason)));
    }
}

fn content(pages: &mut Pages<'_>, hdu: &Hdu) -> Result<Content, Error> {
    let only = |array| Content { array: Some(array), left_out: Vec::new() };
    if hdu.cards.is_random_groups() {
        return Ok(only(Err(Unreadable::unsupported(
            "an HDU of random groups (FITS Standard 4.0, section 6)",
        ))));
    }
    Ok(match hdu.cards.extension() {
        None if hdu.cards.naxis(0).is_none() => Content { array: None, left_out: Vec::new() },
        None | Some("IMAGE" | "IUEIMAGE") => only(image::plain(hdu)),
        Some("BINTABLE" | "A3DTABLE") if hdu.cards.is_true("ZIMAGE") => {
            only(settle(pages, |pages| compressed::image(pages, hdu))?)
        }
        Some("BINTABLE" | "A3DTABLE") if hdu.cards.is_true("ZTABLE") => {
            only(Err(Unreadable::unsupported("a compressed table (ZTABLE)")))
        }
        Some("BINTABLE" | "A3DTABLE") => table::binary(hdu),
        Some("TABLE") => only(table::text(hdu)),
        Some(other) => only(Err(Unreadable::unsupported(format!("extension {other}")))),
    })
}

/// The names used so far.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn give(&mut self, hdu: &Hdu) -> String {
        let plain = if hdu.number == 0 { "primary".into() } else { format!("hdu{}", hdu.number) };
        let extname = hdu.cards.text("EXTNAME").map(|name| name.trim().replace('/', "_"));
        let extname = extname.filter(|name| !name.is_empty());
        let version = hdu.cards.integer("EXTVER").unwrap_or(1);
        let with_version = extname.as_ref().map(|name| format!("{name}_{version}"));
        let with_number = extname.as_ref().map(|name| format!("{name}_{plain}"));
        let candidates = [extname, with_version, with_number, Some(plain.clone())];
        let free = candidates.into_iter().flatten().find(|name| !self.0.contains(name));
        let name = free.unwrap_or_else(|| format!("{plain}_{}", self.0.len()));
        self.0.insert(name.clone());
        name
    }
}
