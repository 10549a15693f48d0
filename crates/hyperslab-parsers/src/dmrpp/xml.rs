//! An XML document as a tree of elements. Nothing is expanded: only XML's own five entities are allowed.

use hyperslab_core::{ByteRange, FileIndex};
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::error::Error;
use crate::zarr::files::Files;

/// The deepest nesting of elements. Groups are seldom nested deeper than five.
const MAX_DEPTH: usize = 128;
/// How many elements other than `chunk` are kept.
const MAX_ELEMENTS: u64 = 2_000_000;
/// How many attributes an element may have. DMR++ has eight.
const MAX_ATTRIBUTES: usize = 64;

/// An element, by its name without prefix: DAP and DMR++ share no names.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub name: String,
    attributes: Vec<(String, String)>,
    pub children: Vec<Node>,
    pub text: String,
    /// The `chunk` children. There may be millions.
    pub chunks: Vec<ChunkLocation>,
}

/// Where the bytes of a chunk are, from a `chunk` element.
#[derive(Debug)]
pub(super) struct ChunkLocation {
    pub range: ByteRange,
    /// The index of its first element on each axis; empty for an array in one piece.
    pub position: Box<[u64]>,
    pub filter_mask: u32,
    /// The file, if the element names its own.
    pub file: Option<FileIndex>,
}

impl Node {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first child with this name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children with this name.
    pub fn children<'n>(&'n self, name: &'n str) -> impl Iterator<Item = &'n Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// What is wrong with a document.
pub(super) fn invalid(offset: u64, problem: impl Into<String>) -> Error {
    Error::invalid("a DMR++ document", offset, problem)
}

/// The root of a document. Files that its chunks name are added to `files`.
pub(super) fn root(text: &str, files: &mut Files) -> Result<Node, Error> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Node::default()];
    let mut count = 0_u64;
    loop {
        let event = reader.read_event();
        let at = reader.buffer_position();
        match event.map_err(|error| invalid(reader.error_position(), error.to_string()))? {
            Event::Start(start) => {
                if open.len() > MAX_DEPTH {
                    return Err(Error::TooMany { what: "elements within elements", limit: MAX_DEPTH as u64 });
                }
                open.push(element(&start, at)?);
            }
            Event::Empty(start) => count += close(&mut open, element(&start, at)?, files, at)?,
            Event::End(_) => match open.pop() {
                Some(node) if !open.is_empty() => count += close(&mut open, node, files, at)?,
                _ => return Err(invalid(at, "the end of an element that never started")),
            },
            Event::Text(text) => {
                write(&mut open, &text.decode().map_err(|error| invalid(at, error.to_string()))?);
            }
            Event::CData(text) => {
                write(&mut open, &text.decode().map_err(|error| invalid(at, error.to_string()))?);
            }
            Event::GeneralRef(reference) => write(&mut open, &character(&reference, at)?),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
        if count > MAX_ELEMENTS {
            return Err(Error::TooMany { what: "elements of a document", limit: MAX_ELEMENTS });
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(mut top), true) if top.children.len() == 1 => Ok(top.children.swap_remove(0)),
        (Some(_), true) => Err(invalid(0, "it has no root")),
        _ => Err(invalid(text.len() as u64, "it ends within an element")),
    }
}

fn write(open: &mut [Node], text: &str) {
    if let Some(node) = open.last_mut() {
        node.text.push_str(text);
    }
}

fn character(reference: &BytesRef<'_>, at: u64) -> Result<String, Error> {
    let unknown = |name: &str| invalid(at, format!("the entity {name:?} is not one of XML's own"));
    if let Some(character) = reference.resolve_char_ref().map_err(|error| invalid(at, error.to_string()))? {
        return Ok(character.to_string());
    }
    let name = reference.decode().map_err(|error| invalid(at, error.to_string()))?;
    resolve_predefined_entity(&name).map(str::to_owned).ok_or_else(|| unknown(&name))
}

fn element(start: &BytesStart<'_>, at: u64) -> Result<Node, Error> {
    let local = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut node = Node { name: local(start.local_name().as_ref()), ..Node::default() };
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| invalid(at, error.to_string()))?;
        if node.attributes.len() == MAX_ATTRIBUTES {
            return Err(Error::TooMany { what: "attributes of an element", limit: MAX_ATTRIBUTES as u64 });
        }
        let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0);
        let value = value.map_err(|error| invalid(at, error.to_string()))?.into_owned();
        node.attributes.push((local(attribute.key.local_name().as_ref()), value));
    }
    Ok(node)
}

/// Adds a complete element to its parent. Returns how many elements this keeps.
fn close(open: &mut [Node], node: Node, files: &mut Files, at: u64) -> Result<u64, Error> {
    let Some(parent) = open.last_mut() else { return Err(invalid(at, "an element without a root")) };
    if node.name == "chunk" && node.attribute("LinkedBlockIndex").is_none() {
        parent.chunks.push(location(&node, files, at)?);
        return Ok(0);
    }
    parent.children.push(node);
    Ok(1)
}

fn location(node: &Node, files: &mut Files, at: u64) -> Result<ChunkLocation, Error> {
    let number = |name: &str| {
        let value = node.attribute(name).and_then(|text| text.trim().parse().ok());
        value.ok_or_else(|| invalid(at, format!("a chunk without {name}")))
    };
    let range = ByteRange::new(number("offset")?, number("nBytes")?);
    let mask = node.attribute("fm").map_or(Some(0), |text| text.trim().parse().ok());
    let file = node.attribute("href").map(|href| files.number(href));
    Ok(ChunkLocation {
        range: range.map_err(|error| invalid(at, error.to_string()))?,
        position: numbers(node.attribute("chunkPositionInArray").unwrap_or_default())
            .ok_or_else(|| invalid(at, "a chunk's position is not a list of numbers"))?,
        filter_mask: mask.ok_or_else(|| invalid(at, "a chunk's filter mask is not a number"))?,
        file,
    })
}

/// Numbers separated by blanks, or in brackets and separated by commas.
pub(super) fn numbers(text: &str) -> Option<Box<[u64]>> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    let words = inner.split([',', ' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().ok()).collect()
}
