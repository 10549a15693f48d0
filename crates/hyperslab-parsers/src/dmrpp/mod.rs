//! DMR++ documents: DAP4's description of a file (XML), with the location of each chunk.
//!
//! We follow `OPeNDAP`'s "DMR++" documentation and schema, and what its Hyrax server writes: filters in encoding order
//! (documents without `dmrpp:version` list them in any order: shuffle is first, fletcher32 last), little-endian by
//! default, fill values rounded to six digits. Arrays without bytes in the document are unsupported; they are never
//! read as fill values.

mod linked;
mod names;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod values;
mod variable;
mod xml;

use hyperslab_core::{ByteRange, Group, Link, Tree};

use crate::error::{Error, FetchError};
use crate::pages::Source;
use crate::zarr::files::{Files, local};
use names::{Names, Scope};
use values::{attributes, is_variable};
use xml::Node;

/// A document is read as a whole. No sensible one is longer.
const MAX_NBYTES: u64 = 512 << 20;
/// The name in documents for a data file whose location only its server knows.
const TEMPLATES: &[&str] = &["OPeNDAP_DMRpp_DATA_ACCESS_URL", "OPeNDAP_DMRpp_MISSING_DATA_ACCESS_URL"];

/// The tree of a document. The file without a name is the one beside the document: see [`beside`].
pub fn parse(source: &dyn Source) -> Result<Tree, Error> {
    let length = source.length();
    if length > MAX_NBYTES {
        return Err(Error::TooMany { what: "bytes of a DMR++ document", limit: MAX_NBYTES });
    }
    let bytes = source.read_ranges(&[ByteRange { offset: 0, length }])?.pop();
    let bytes = bytes.ok_or_else(|| FetchError("no bytes of a document came".to_owned()))?;
    parse_text(&text(&bytes))
}

/// The name of the data file, from the document's name: `ocean.nc` for `ocean.nc.dmrpp`.
pub fn beside(document: &str) -> &str {
    let name = document.strip_suffix(".dmrpp").unwrap_or(document);
    name.strip_suffix(".dap").unwrap_or(name)
}

/// Documents declare Latin-1 but often are UTF-8.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let latin = |_| bytes.iter().map(|&byte| char::from(byte)).collect();
    std::str::from_utf8(bytes).map_or_else(latin, str::to_owned)
}

fn parse_text(text: &str) -> Result<Tree, Error> {
    let mut files = Files::default();
    files.number(""); // number 1 is the data file, whatever its name
    let root = xml::root(text, &mut files)?;
    if root.name != "Dataset" {
        let reason = format!("XML with the root {:?}; only DMR++ documents are supported", root.name);
        return Err(Error::UnknownFormat { reason });
    }
    if let Some(href) = root.attribute("href") {
        files.names.iter_mut().take(1).for_each(|name| href.clone_into(name));
    }
    let mut document = Document {
        names: Names::of(&root)?,
        has_version: root.attribute("version").is_some(),
        tree: Tree::default(),
    };
    document.group(&root, "");
    let mut tree = document.tree;
    tree.other_files = files.names.iter().map(|name| file_name(name)).collect();
    Ok(tree)
}

fn file_name(name: &str) -> String {
    if TEMPLATES.contains(&name) { String::new() } else { local(name).to_owned() }
}

struct Document<'n> {
    names: Names<'n>,
    has_version: bool,
    tree: Tree,
}

impl<'n> Document<'n> {
    /// The number of a group.
    fn group(&mut self, node: &'n Node, path: &str) -> usize {
        let number = self.tree.groups.len();
        self.tree.groups.push(Group { attributes: attributes(node), links: Vec::new() });
        let mut links = Vec::new();
        for child in &node.children {
            let name = child.attribute("name").unwrap_or_default();
            if child.name == "Group" {
                links.push((name.to_owned(), Link::Group(self.group(child, &format!("{path}/{name}")))));
            } else if is_variable(&child.name) {
                links.push((name.to_owned(), self.variable(child, path)));
            }
        }
        if let Some(group) = self.tree.groups.get_mut(number) {
            group.links = links;
        }
        number
    }

    fn variable(&mut self, node: &Node, scope: Scope<'_>) -> Link {
        match variable::array(node, &self.names, scope, self.has_version) {
            Ok(array) => {
                self.tree.arrays.push(array);
                Link::Array(self.tree.arrays.len() - 1)
            }
            Err(reason) => Link::Unreadable(reason),
        }
    }
}
