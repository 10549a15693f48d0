//! From the messages of an object header to a group, an array, or a committed datatype.

use hyperslab_core::{Codec, Element, Fill, Unreadable};

use super::attribute::RawAttribute;
use super::dataspace::Dataspace;
use super::datatype;
use super::external::ExternalFiles;
use super::file::File;
use super::fill;
use super::filters::{self, Filter};
use super::header::{self, Message, kind};
use super::layout::Layout;
use super::links::{self, DenseStorage, NamedLink, StorageInformation};
use super::symbol_table::SymbolTable;
use crate::error::Error;
use crate::pages::Pages;

/// An object, as far as its header describes it.
#[derive(Debug)]
pub(crate) struct Description {
    /// The kind of object.
    pub kind: Kind,
    /// The attributes in the header.
    pub attributes: Vec<RawAttribute>,
    /// Attributes stored elsewhere.
    pub dense_attributes: Option<DenseStorage>,
}

/// The kinds of objects.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A group.
    Group(GroupDescription),
    /// An array.
    Array(Box<ArrayDescription>),
    /// A named datatype.
    Datatype(Option<Box<Element>>),
}

/// Where the links of a group are.
#[derive(Debug)]
pub(crate) struct GroupDescription {
    /// In the header.
    pub links: Vec<NamedLink>,
    /// Whether their creation order is tracked.
    pub ordered: bool,
    /// In a heap.
    pub dense: Option<DenseStorage>,
    /// In the table of an old-style group.
    pub table: Option<SymbolTable>,
}

/// An array, without its chunks.
#[derive(Debug)]
pub(crate) struct ArrayDescription {
    /// Its shape.
    pub dataspace: Dataspace,
    /// Its elements.
    pub element: Element,
    /// How it is stored, or why that cannot be read.
    pub storage: Result<StorageDescription, Unreadable>,
}

/// How an array is stored.
#[derive(Debug)]
pub(crate) struct StorageDescription {
    /// Its layout.
    pub layout: Layout,
    /// Its filters.
    pub codecs: Vec<Codec>,
    /// The same, by number and parameters.
    pub filters: Vec<(u16, Vec<u32>)>,
    /// Its fill value.
    pub fill: Fill,
    /// The location of its bytes, if they are in other files.
    pub external: Option<ExternalFiles>,
}

/// Reads the object whose header is at an address.
pub(crate) fn describe(file: &mut File, pages: &Pages<'_>, address: u64) -> Result<Description, Error> {
    let messages = Messages(header::messages(pages, file.sizes, address)?);
    let kind = messages.kind(file, pages, address);
    let attributes = messages.attributes(file, pages);
    let information = messages.storage(file, kind::ATTRIBUTE_INFO, 2);
    let description = Description {
        kind: kind?,
        attributes: attributes?,
        dense_attributes: information?.and_then(|information| information.dense),
    };
    file.budget.spend(messages.0.iter().map(|message| message.body.len() + 16).sum())?;
    Ok(description)
}

/// The filters of the array whose header is at an address.
pub(crate) fn filters(file: &mut File, pages: &Pages<'_>, address: u64) -> Result<Vec<Filter>, Error> {
    Messages(header::messages(pages, file.sizes, address)?).filters(file, pages)
}

/// The messages of one header.
pub(super) struct Messages(pub(super) Vec<Message>);

impl Messages {
    /// The address of the committed datatype that the object shares with others.
    pub(super) fn committed(&self, file: &File) -> Result<Option<u64>, Error> {
        let shared = self.first(kind::DATATYPE).filter(|message| message.shared);
        shared.map_or(Ok(None), |message| file.shared_address(message))
    }

    /// The element of an array or of a committed datatype.
    pub(super) fn element(&self, file: &mut File, pages: &Pages<'_>) -> Result<Element, Error> {
        let missing = || Error::invalid("object header", 0, "no datatype");
        let datatype = file.resolved(pages, self.first(kind::DATATYPE).ok_or_else(missing)?)?;
        datatype::element(&mut datatype.cursor("datatype message"), file.sizes)
    }

    /// Whether the creation order of attributes is tracked.
    pub(super) fn attributes_ordered(&self, file: &File) -> Result<bool, Error> {
        let information = self.storage(file, kind::ATTRIBUTE_INFO, 2)?;
        Ok(information.is_some_and(|information| information.ordered))
    }

    fn first(&self, kind: u16) -> Option<&Message> {
        self.0.iter().find(|message| message.kind == kind)
    }

    fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.0.iter().filter(move |message| message.kind == kind)
    }

    fn kind(&self, file: &mut File, pages: &Pages<'_>, address: u64) -> Result<Kind, Error> {
        let has = |kind| self.first(kind).is_some();
        if has(kind::DATATYPE) && (has(kind::LAYOUT) || has(kind::DATASPACE)) {
            return Ok(Kind::Array(Box::new(self.array(file, pages, address)?)));
        }
        if has(kind::DATATYPE) {
            return Ok(Kind::Datatype(self.committed_element(file, pages)?.map(Box::new)));
        }
        if [kind::SYMBOL_TABLE, kind::LINK_INFO, kind::LINK, kind::GROUP_INFO].into_iter().any(has) {
            return self.group(file).map(Kind::Group);
        }
        Err(Error::invalid("object header", address, "neither a group nor an array nor a datatype"))
    }

    /// The element of a committed datatype, if it can be read.
    fn committed_element(&self, file: &mut File, pages: &Pages<'_>) -> Result<Option<Element>, Error> {
        let Some(datatype) = self.first(kind::DATATYPE) else { return Ok(None) };
        let datatype = match file.resolved(pages, datatype) {
            Err(error) if error.is_not_held() => return Err(error),
            resolved => resolved.ok(),
        };
        let element =
            |message: &Message| datatype::element(&mut message.cursor("datatype message"), file.sizes).ok();
        Ok(datatype.as_deref().and_then(element))
    }

    /// All attributes in the header. Notes everything that is missing before it gives up.
    fn attributes(&self, file: &mut File, pages: &Pages<'_>) -> Result<Vec<RawAttribute>, Error> {
        let messages = self.all(kind::ATTRIBUTE);
        let read: Vec<_> = messages.map(|message| RawAttribute::read(file, pages, message)).collect();
        read.into_iter().collect()
    }

    fn storage(&self, file: &File, kind: u16, width: usize) -> Result<Option<StorageInformation>, Error> {
        let message = self.first(kind);
        let read =
            |message: &Message| links::storage(&mut message.cursor("storage information"), file.sizes, width);
        message.map(read).transpose()
    }

    fn group(&self, file: &File) -> Result<GroupDescription, Error> {
        let link = |message: &Message| links::link(&mut message.cursor("link message"), file.sizes);
        let links = self.all(kind::LINK).map(link).collect::<Result<_, _>>()?;
        let information = self.storage(file, kind::LINK_INFO, 8)?;
        let table = self.first(kind::SYMBOL_TABLE);
        let table =
            table.map(|message| SymbolTable::read(&mut message.cursor("symbol table message"), file.sizes));
        Ok(GroupDescription {
            links,
            ordered: information.is_some_and(|information| information.ordered),
            dense: information.and_then(|information| information.dense),
            table: table.transpose()?,
        })
    }

    fn array(&self, file: &mut File, pages: &Pages<'_>, address: u64) -> Result<ArrayDescription, Error> {
        let missing = |what| Error::invalid("object header", address, format!("an array without {what}"));
        let datatype = self.first(kind::DATATYPE).ok_or_else(|| missing("datatype"))?;
        let datatype = file.resolved(pages, datatype)?;
        let element = datatype::element(&mut datatype.cursor("datatype message"), file.sizes)?;
        let dataspace = self.first(kind::DATASPACE).ok_or_else(|| missing("dataspace"))?;
        let dataspace = file.resolved(pages, dataspace)?;
        let dataspace = Dataspace::read(&mut dataspace.cursor("dataspace message"), file.sizes)?;
        let storage = match self.array_storage(file, pages, address, &element) {
            Err(error) if error.is_not_held() => return Err(error),
            outcome => outcome.map_err(Unreadable::from),
        };
        Ok(ArrayDescription { dataspace, element, storage })
    }

    fn array_storage(
        &self,
        file: &mut File,
        pages: &Pages<'_>,
        address: u64,
        element: &Element,
    ) -> Result<StorageDescription, Error> {
        let found = self.filters(file, pages)?;
        let filters = found.iter().map(|filter| (filter.number, filter.parameters.clone())).collect();
        let codecs = filters::codecs(found, element.nbytes());
        let layout = self.first(kind::LAYOUT);
        let layout =
            layout.ok_or_else(|| Error::invalid("object header", address, "an array without layout"))?;
        let layout = Layout::read(&mut layout.cursor("data layout message"), file.sizes, !codecs.is_empty())?;
        let external = self.first(kind::EXTERNAL_FILES);
        let external = external
            .map(|message| ExternalFiles::read(&mut message.cursor("external file list"), file.sizes))
            .transpose()?;
        let fill = self.fill(file, pages, address, element)?;
        Ok(StorageDescription { layout, codecs, filters, fill, external })
    }

    pub(super) fn filters(&self, file: &mut File, pages: &Pages<'_>) -> Result<Vec<Filter>, Error> {
        let Some(message) = self.first(kind::FILTERS) else { return Ok(Vec::new()) };
        filters::read(&mut file.resolved(pages, message)?.cursor("filter pipeline message"))
    }

    fn fill(
        &self,
        file: &mut File,
        pages: &Pages<'_>,
        address: u64,
        element: &Element,
    ) -> Result<Fill, Error> {
        let fill = match (self.first(kind::FILL), self.first(kind::OLD_FILL)) {
            (Some(message), _) => {
                fill::new(&mut file.resolved(pages, message)?.cursor("fill value message"))?
            }
            (None, Some(message)) => {
                fill::old(&mut file.resolved(pages, message)?.cursor("fill value message"))?
            }
            (None, None) => Fill::Zero,
        };
        match &fill {
            Fill::Value(bytes) if bytes.len() as u64 != element.nbytes() => {
                let problem =
                    format!("a fill value of {} bytes for elements of {}", bytes.len(), element.nbytes());
                Err(Error::invalid("fill value message", address, problem))
            }
            _ => Ok(fill),
        }
    }
}
