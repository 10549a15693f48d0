//! The breadth-first walk through a file's objects: small steps, repeated after each round until none is left.

use std::collections::{HashMap, HashSet, VecDeque};

use hyperslab_core::{Element, StoredChunk, VirtualMappings};

use super::attribute::RawAttribute;
use super::chunk_index::{ChunkIndex, IndexTask};
use super::dense::{Dense, DenseWalk};
use super::external::{ExternalFiles, NamedPart};
use super::file::File;
use super::layout::Layout;
use super::lazy_index::LazyIndex;
use super::links::{self, NamedLink, Target};
use super::object::{self, ArrayDescription, Description, GroupDescription, Kind};
use super::scope::{Followed, Scope};
use super::symbol_table::{Node, SymbolTable};
use super::virtual_layout;
use super::vlen;
use crate::error::Error;
use crate::pages::Pages;

/// The most objects of a file.
const MAX_OBJECTS: usize = 10_000_000;
/// Bytes of memory for a link besides its name. They count, so groups cannot share tables without limit.
const LINK_NBYTES: usize = size_of::<NamedLink>();

/// One object of the file.
#[derive(Debug)]
pub(crate) struct Object {
    /// The address of its header.
    pub address: u64,
    /// What is known about it.
    pub state: State,
    /// Its attributes.
    pub attributes: Vec<RawAttribute>,
    /// Which part of it is read, if it is a group.
    followed: Followed,
}

/// What is known about an object.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing yet.
    Waiting,
    /// It cannot be read.
    Failed(Error),
    /// A group.
    Group(GroupState),
    /// An array.
    Array(Box<ArrayState>),
    /// A named datatype.
    Datatype(Option<Box<Element>>),
}

/// A group, with the links found so far.
#[derive(Debug, Default)]
pub(crate) struct GroupState {
    /// Its links.
    pub links: Vec<NamedLink>,
    /// Whether they have an order besides that of their names.
    pub ordered: bool,
    /// The nodes of its table that have been read.
    nodes: HashSet<u64>,
}

/// An array, with the chunks found so far.
#[derive(Debug)]
pub(crate) struct ArrayState {
    /// The contents of its header. If the storage is an error, the first step that needs it fails.
    pub description: ArrayDescription,
    /// Chunks found.
    pub chunks: Vec<StoredChunk>,
    /// Parts in other files.
    pub external: Vec<NamedPart>,
    /// Parts of other arrays.
    pub mappings: VirtualMappings,
    /// What leads to its chunks, if we keep that.
    pub lazy_index: Option<LazyIndex>,
    index: Option<ChunkIndex>,
}

/// A step, and the object that it is for.
#[derive(Debug)]
struct Task {
    object: usize,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// Read its header.
    Header,
    /// Read a node of its symbol table.
    TableNode(SymbolTable, u64),
    /// Read links or attributes from a heap.
    Dense(Dense, Box<DenseWalk>),
    /// Follow the pointers of an attribute.
    Values(usize),
    /// Read a part of its chunk index.
    Chunks(IndexTask),
    /// Read the names of its external files.
    External(ExternalFiles),
    /// Read the mappings of a virtual array.
    Mappings(u64, u32),
}

/// What happens to chunk indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexes {
    /// They are read.
    Read,
    /// What leads to them is kept.
    Kept,
}

/// The walk, and at its end all that it found. Object 0 is the root.
#[derive(Debug)]
pub(crate) struct Walk {
    /// What the steps share.
    pub file: File,
    /// Every object, by number.
    pub objects: Vec<Object>,
    /// The numbers, by address.
    pub by_address: HashMap<u64, usize>,
    scope: Scope,
    indexes: Indexes,
    tasks: VecDeque<Task>,
}

impl Walk {
    /// Walks from the root until no step is left.
    pub fn run(
        pages: &mut Pages<'_>,
        file: File,
        root: u64,
        scope: Scope,
        indexes: Indexes,
    ) -> Result<Self, Error> {
        let (by_address, tasks, all) = (HashMap::new(), VecDeque::new(), scope.root());
        let mut walk = Self { file, objects: Vec::new(), by_address, scope, indexes, tasks };
        walk.meet(root, all)?;
        while let Some(missed) = walk.round(pages)? {
            if !pages.fetch()? {
                return Err(missed);
            }
        }
        Ok(walk)
    }

    /// Makes all steps that the pages allow. Returns the steps that lack bytes.
    fn round(&mut self, pages: &Pages<'_>) -> Result<Option<Error>, Error> {
        let (mut waiting, mut missed) = (VecDeque::new(), None);
        while let Some(mut task) = self.tasks.pop_front() {
            match self.step(pages, &mut task) {
                Ok(()) => {}
                Err(error) if error.is_not_held() => {
                    waiting.push_back(task);
                    missed = Some(error);
                }
                Err(error) if self.file.budget.is_exceeded() => return Err(error),
                Err(error) => self.fail(&task, &error),
            }
        }
        self.tasks = waiting;
        Ok(missed)
    }

    fn push(&mut self, object: usize, step: Step) {
        self.tasks.push_back(Task { object, step });
    }

    /// The object that a link leads to. A new object gets a number and is read next. If several links lead to one
    /// object, the first link decides how much of it is read.
    fn meet(&mut self, address: u64, followed: Followed) -> Result<(), Error> {
        if self.by_address.contains_key(&address) {
            return Ok(());
        }
        let object = self.objects.len();
        if object >= MAX_OBJECTS {
            return Err(Error::TooMany { what: "objects", limit: MAX_OBJECTS as u64 });
        }
        self.by_address.insert(address, object);
        self.objects.push(Object { address, state: State::Waiting, attributes: Vec::new(), followed });
        self.push(object, Step::Header);
        Ok(())
    }

    fn step(&mut self, pages: &Pages<'_>, task: &mut Task) -> Result<(), Error> {
        let number = task.object;
        match &mut task.step {
            Step::Header => self.header(pages, number),
            Step::TableNode(table, address) => self.table_node(pages, number, *table, *address),
            Step::Dense(Dense::Links, walk) => {
                let messages = walk.messages(&mut self.file, pages)?;
                let sizes = self.file.sizes;
                let link = |message: &super::header::Message| links::link(&mut message.cursor("link"), sizes);
                let links = messages.iter().map(link).collect::<Result<_, _>>()?;
                self.links(number, links)
            }
            Step::Dense(Dense::Attributes, walk) => {
                let messages = walk.messages(&mut self.file, pages)?;
                self.dense_attributes(pages, number, &messages)
            }
            Step::Values(attribute) => self.values(pages, number, *attribute),
            Step::Chunks(part) => self.chunks(pages, number, part),
            Step::External(files) => {
                let named = files.named(pages, self.file.sizes)?;
                self.with_array(number, |array| array.external = named);
                Ok(())
            }
            Step::Mappings(address, index) => self.mappings(pages, number, *address, *index),
        }
    }

    /// What the failure of a step means for its object.
    fn fail(&mut self, task: &Task, error: &Error) {
        let Some(object) = self.objects.get_mut(task.object) else { return };
        match &task.step {
            Step::Header | Step::TableNode(..) | Step::Dense(Dense::Links, _) => {
                object.state = State::Failed(error.clone());
            }
            Step::Dense(Dense::Attributes, _) => {
                object.attributes.push(RawAttribute::failed(String::new(), error));
            }
            Step::Values(attribute) => {
                if let Some(raw) = object.attributes.get_mut(*attribute) {
                    raw.attribute.value = Err(error.clone().into());
                }
            }
            Step::Chunks(_) | Step::External(_) | Step::Mappings(..) => {
                self.with_array(task.object, |array| array.description.storage = Err(error.clone().into()));
            }
        }
    }

    fn with_array(&mut self, number: usize, change: impl FnOnce(&mut ArrayState)) {
        if let Some(Object { state: State::Array(array), .. }) = self.objects.get_mut(number) {
            change(array);
        }
    }

    fn header(&mut self, pages: &Pages<'_>, number: usize) -> Result<(), Error> {
        let Some(address) = self.objects.get(number).map(|object| object.address) else { return Ok(()) };
        let Description { kind, attributes, dense_attributes } =
            object::describe(&mut self.file, pages, address)?;
        if let Some(storage) = dense_attributes {
            let walk = DenseWalk::new(Dense::Attributes, storage, self.file.sizes);
            self.push(number, Step::Dense(Dense::Attributes, Box::new(walk)));
        }
        self.attributes(number, attributes)?;
        match kind {
            Kind::Group(description) => self.group(number, description),
            Kind::Array(description) => {
                self.array(pages, number, *description);
                Ok(())
            }
            Kind::Datatype(element) => {
                self.state(number, State::Datatype(element));
                Ok(())
            }
        }
    }

    fn state(&mut self, number: usize, state: State) {
        if let Some(object) = self.objects.get_mut(number) {
            object.state = state;
        }
    }

    fn attributes(&mut self, number: usize, more: Vec<RawAttribute>) -> Result<(), Error> {
        let Some(object) = self.objects.get_mut(number) else { return Ok(()) };
        for raw in more {
            if raw.attribute.value.as_ref().is_ok_and(|value| value.element.has_pointers()) {
                let step = Step::Values(object.attributes.len());
                self.tasks.push_back(Task { object: number, step });
            }
            let nbytes = raw.attribute.value.as_ref().map_or(0, |value| value.bytes.len());
            self.file.budget.spend(nbytes)?;
            object.attributes.push(raw);
        }
        Ok(())
    }

    fn dense_attributes(
        &mut self,
        pages: &Pages<'_>,
        number: usize,
        messages: &[super::header::Message],
    ) -> Result<(), Error> {
        let read = messages.iter().map(|message| RawAttribute::read(&mut self.file, pages, message));
        let read: Vec<_> = read.collect();
        let mut attributes = read.into_iter().collect::<Result<Vec<_>, _>>()?;
        attributes.sort_by(|one, other| one.attribute.name.cmp(&other.attribute.name));
        self.attributes(number, attributes)
    }

    fn values(&mut self, pages: &Pages<'_>, number: usize, attribute: usize) -> Result<(), Error> {
        let raw = self.objects.get_mut(number).and_then(|object| object.attributes.get_mut(attribute));
        let Some(Ok(value)) = raw.map(|raw| &mut raw.attribute.value) else { return Ok(()) };
        let File { collections, sizes, .. } = &mut self.file;
        let heap = vlen::values(collections, pages, *sizes, &value.element, &value.bytes)?;
        self.file.budget.spend(heap.iter().map(|bytes| bytes.len() + size_of::<Vec<u8>>()).sum())?;
        value.heap = heap;
        Ok(())
    }

    fn group(&mut self, number: usize, description: GroupDescription) -> Result<(), Error> {
        let GroupDescription { links, ordered, dense, table } = description;
        self.state(number, State::Group(GroupState { ordered, ..GroupState::default() }));
        if self.objects.get(number).is_some_and(|object| object.followed.is_end()) {
            return Ok(());
        }
        if let Some(table) = table {
            self.push(number, Step::TableNode(table, table.tree));
        }
        if let Some(storage) = dense {
            let walk = DenseWalk::new(Dense::Links, storage, self.file.sizes);
            self.push(number, Step::Dense(Dense::Links, Box::new(walk)));
        }
        self.links(number, links)
    }

    fn links(&mut self, number: usize, mut links: Vec<NamedLink>) -> Result<(), Error> {
        let Some(group) = self.objects.get(number).map(|object| object.followed.clone()) else {
            return Ok(());
        };
        links.retain(|link| self.scope.below(&group, &link.name).is_some());
        let nbytes = links.iter().map(|link| link.name.len() + LINK_NBYTES).sum();
        self.file.budget.spend(nbytes)?;
        for link in &links {
            if let (Target::Object(address), Some(followed)) =
                (&link.target, self.scope.below(&group, &link.name))
            {
                self.meet(*address, followed)?;
            }
        }
        if let Some(Object { state: State::Group(group), .. }) = self.objects.get_mut(number) {
            group.links.extend(links);
        }
        Ok(())
    }

    fn table_node(
        &mut self,
        pages: &Pages<'_>,
        number: usize,
        table: SymbolTable,
        address: u64,
    ) -> Result<(), Error> {
        // A group that has failed already needs no more nodes. Without this, a node that leads back to itself would be
        // read until the budget ends.
        let Some(Object { state: State::Group(group), .. }) = self.objects.get_mut(number) else {
            return Ok(());
        };
        if group.nodes.contains(&address) {
            return Err(Error::Cycle { what: "B-tree of a group", offset: address });
        }
        let node = table.node(pages, self.file.sizes, address)?;
        group.nodes.insert(address);
        match node {
            Node::Links(links) => self.links(number, links),
            Node::Children(children) => {
                self.file.budget.spend(children.len() * size_of::<Task>())?;
                for child in children {
                    self.push(number, Step::TableNode(table, child));
                }
                Ok(())
            }
        }
    }

    fn array(&mut self, pages: &Pages<'_>, number: usize, mut description: ArrayDescription) {
        let (mut index, mut lazy_index) = (None, None);
        let storage = description.storage.as_ref().ok();
        let external = storage.and_then(|storage| storage.external.clone());
        if let (Some(storage), Some(shape)) = (storage, &description.dataspace.shape) {
            match &storage.layout {
                Layout::Chunked(layout) => {
                    let max_shape = &description.dataspace.max_shape;
                    index = Some(ChunkIndex::new(layout, shape, max_shape, self.file.sizes));
                    lazy_index = (self.indexes == Indexes::Kept).then(|| LazyIndex {
                        layout: layout.clone(),
                        shape: shape.clone(),
                        max_shape: max_shape.clone(),
                        sizes: self.file.sizes,
                    });
                }
                Layout::Virtual { address: Some(address), index } => {
                    self.push(number, Step::Mappings(*address, *index));
                }
                _ => {}
            }
        }
        if let Some(files) = external {
            self.push(number, Step::External(files));
        }
        let index = index.transpose().unwrap_or_else(|error| {
            description.storage = Err(error.into());
            lazy_index = None;
            None
        });
        if let Some(index) = index.as_ref().filter(|_| lazy_index.is_none()) {
            index.want(pages);
            for part in index.start() {
                self.push(number, Step::Chunks(part));
            }
        }
        let (chunks, external, mappings) = (Vec::new(), Vec::new(), VirtualMappings::NONE);
        let array = ArrayState { description, chunks, external, mappings, lazy_index, index };
        self.state(number, State::Array(Box::new(array)));
    }

    fn chunks(&mut self, pages: &Pages<'_>, number: usize, part: &IndexTask) -> Result<(), Error> {
        let Some(Object { state: State::Array(array), .. }) = self.objects.get_mut(number) else {
            return Ok(());
        };
        let (Some(index), Ok(_)) = (&array.index, &array.description.storage) else { return Ok(()) };
        let more = index.step(part, pages, &mut array.chunks)?;
        for part in more {
            self.push(number, Step::Chunks(part));
        }
        Ok(())
    }

    fn mappings(&mut self, pages: &Pages<'_>, number: usize, address: u64, index: u32) -> Result<(), Error> {
        let sizes = self.file.sizes;
        let bytes = self.file.collections.object(pages, sizes, address, index)?;
        let mappings = virtual_layout::read_mappings(&bytes, address, sizes)?;
        self.file.budget.spend(bytes.len())?;
        self.with_array(number, |array| array.mappings = mappings);
        Ok(())
    }
}
