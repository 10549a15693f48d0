//! Combines archives into one: what they have in common, and arrays made of theirs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{
    Along, Array, Attribute, ByteOrder, Charset, ChunkGrid, Counterparts, Element, FileIndex, Fill, Group,
    Link, Manifest, Notes, Packing, PlanError, Role, Segment, SegmentAxis, StringPadding, Tree, Unreadable,
    Value, VirtualMappings, concatenate, counterparts, recoded, same_bytes, with_new_axis,
};
use hyperslab_engine::{FarStore, FileStore, Identity, Opener, OtherFile, Store, Stores};

use crate::archive::{Archive, ArchiveKind, Heap, OpenCollection};
use crate::error::{Error, Problem};
use crate::format::Format;
use crate::open_local::OpenOptions;
use crate::role::role;
use crate::whole_array::WholeArray;

/// How the elements of one kind of counterparts are converted for the combined array.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    /// Reinterpret the stored bytes as this dtype of the same width, in NumPy's notation: for example, signed integers
    /// as unsigned ones.
    pub stored_as: Option<String>,
    /// How stored numbers are unpacked.
    pub packing: Option<Packing>,
}

/// An array made of counterparts. The lists have one entry for each counterpart.
#[derive(Clone, Debug, Default)]
pub struct CombinedArray {
    /// The positions of the counterparts' archives.
    pub files: Vec<usize>,
    /// The counterparts' array numbers in those archives.
    pub arrays: Vec<usize>,
    /// The kind of each counterpart. Counterparts of one kind are converted alike.
    pub kinds: Vec<usize>,
    /// By kind. Kinds without an entry are not converted.
    pub conversions: HashMap<usize, Conversion>,
    /// The axis along which they are concatenated; `None` to take the first counterpart alone.
    pub axis: Option<usize>,
    /// Whether that axis is a new one.
    pub is_stacked: bool,
    /// The dtype in NumPy's notation; `None` for the dtype of the first counterpart.
    pub element: Option<String>,
    /// Attributes of the first counterpart that are left out.
    pub dropped: Vec<String>,
    /// Attributes that replace them.
    pub texts: Vec<(String, String)>,
    /// Dtype, shape and bytes, if the elements are already in memory.
    pub values: Option<(String, Vec<u64>, Vec<u8>)>,
}

/// A group: the file and the number whose attributes it has, and its links as name, kind and number.
pub type CombinedGroup = (usize, usize, Vec<(String, String, usize)>);

/// The groups of several archives, as path, file and number; and their arrays, by path.
pub fn find_counterparts(
    archives: &[Arc<Archive>],
    along: &Along,
    ignored: &[&str],
) -> (Vec<(String, usize, usize)>, Vec<Counterparts>) {
    let trees: Vec<&Tree> = archives.iter().map(|archive| &archive.tree).collect();
    counterparts(&trees, along, ignored)
}

impl Archive {
    /// An archive called `name`, with arrays combined from several archives. Errors show the arrays' paths.
    pub fn combine(
        name: String,
        version: String,
        archives: &[Arc<Archive>],
        groups: Vec<CombinedGroup>,
        arrays: &[(String, CombinedArray)],
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let mut combining = Combining { files: archives, ..Combining::default() };
        let mut tree = Tree::default();
        for (path, combined) in arrays {
            let array = combining.array(combined).map_err(|problem| problem.of_array(&name, path))?;
            tree.arrays.push(array);
        }
        tree.groups = groups.into_iter().map(|combined| combining.group(combined)).collect();
        let table = combining.table;
        let heaps = heaps(archives, &tree, arrays, &table);
        let identities = identities(archives);
        let far_requests = archives.iter().filter_map(|file| file.stores.far_requests()).max();
        let stores = Stores::of_files(name.clone(), table.files, opener(table.openers), far_requests);
        let kind = ArchiveKind::Collection(Box::new(OpenCollection { version, heaps, identities }));
        let (path, hidden) = (PathBuf::from(&name), archives.first().map_or(&[][..], |file| file.hidden));
        let mut archive = Self::new(name, &path, Format::Collection, tree, kind, stores, options.cache());
        archive.hidden = hidden;
        Ok(archive.with_options(options))
    }
}

/// The files that elements of arrays point into.
fn heaps(
    files: &[Arc<Archive>],
    tree: &Tree,
    arrays: &[(String, CombinedArray)],
    table: &FileTable,
) -> HashMap<usize, Heap> {
    let pointed = tree.arrays.iter().zip(arrays).enumerate();
    let pointed = pointed.filter(|(_, (array, _))| array.element.has_pointers());
    let heap = |combined: &CombinedArray| {
        let (position, array) = combined.files.first().zip(combined.arrays.first())?;
        let file = files.get(*position)?;
        let ArchiveKind::Collection(open) = &file.kind else {
            return Some(Heap { file: Arc::clone(file), number: *table.own.get(position)? });
        };
        let inner = open.heaps.get(array)?;
        let numbers = table.numbers.get(&address(&file.stores))?;
        let number = *numbers.get(usize::try_from(inner.number).ok()?)?;
        Some(Heap { file: Arc::clone(&inner.file), number })
    };
    pointed.filter_map(|(number, (_, (_, combined)))| Some((number, heap(combined)?))).collect()
}

fn identities(files: &[Arc<Archive>]) -> HashMap<PathBuf, Identity> {
    let mut found = HashMap::new();
    for file in files {
        match &file.kind {
            ArchiveKind::Remote(store) => {
                found.extend(store.identity().map(|known| (file.path.clone(), known)));
            }
            ArchiveKind::Collection(open) => found.extend(open.identities.clone()),
            _ => {}
        }
    }
    found
}

/// Opens each file of a collection the way its own archive does.
fn opener(openers: HashMap<PathBuf, NamedOpener>) -> Opener {
    Arc::new(move |path: &Path| match openers.get(path) {
        Some((_, open)) => open(path),
        None => Ok(Arc::new(FileStore::open(path)?) as Arc<dyn Store>),
    })
}

/// What opens a file; and the number of an archive, if only that archive knows what the file's name means.
type NamedOpener = (Option<usize>, Opener);

/// The files that hold chunks of a collection, and what opens those that are not local files.
#[derive(Default)]
struct FileTable {
    files: Vec<OtherFile>,
    openers: HashMap<PathBuf, NamedOpener>,
    /// The numbers that this table gives an archive's files, by the address of the archive's stores. Number 0 is the
    /// opened file.
    numbers: HashMap<usize, Arc<Vec<FileIndex>>>,
    /// The numbers of the opened files, by archive.
    own: HashMap<usize, FileIndex>,
}

impl FileTable {
    /// Files are told apart by name. If two files share a name, which happens when URLs differ only in the hidden
    /// query, the second gets a number.
    fn push(&mut self, mut file: OtherFile, open: Option<Opener>, owner: Option<usize>) -> FileIndex {
        if let Some(open) = open {
            let name = file.path.clone();
            if self.openers.get(&name).is_some_and(|(other, _)| *other != owner) {
                file.path = format!("{} [{}]", name.display(), self.files.len() + 1).into();
            }
            self.openers.insert(file.path.clone(), (owner, Arc::new(move |_: &Path| open(&name))));
        }
        self.files.push(file);
        FileIndex::try_from(self.files.len()).unwrap_or(FileIndex::MAX)
    }

    /// The numbers of the files that hold an array of an archive.
    fn numbers(&mut self, number: usize, file: &Archive, stores: &Stores) -> Arc<Vec<FileIndex>> {
        let key = address(stores);
        if let Some(known) = self.numbers.get(&key) {
            return Arc::clone(known);
        }
        let own = self.own.get(&number).copied().unwrap_or_else(|| {
            let own = file.own_file().map(|own| self.push(own, file.own_opener(), Some(number)));
            *self.own.entry(number).or_insert(own.unwrap_or(FileIndex::MAX))
        });
        let is_local =
            matches!(file.kind, ArchiveKind::Local(_) | ArchiveKind::Closed(_) | ArchiveKind::Folder);
        let is_plain = is_local && !file.resolver.allowed().is_narrow();
        let open = (!is_plain).then(|| Arc::clone(stores.opener()));
        let owner = matches!(file.kind, ArchiveKind::Collection(_)).then_some(number);
        let others = stores.others().iter().map(|other| self.push(other.clone(), open.clone(), owner));
        let found: Arc<Vec<FileIndex>> = Arc::new(std::iter::once(own).chain(others).collect());
        self.numbers.insert(key, Arc::clone(&found));
        found
    }
}

fn address(stores: &Stores) -> usize {
    std::ptr::from_ref(stores) as usize
}

#[derive(Default)]
struct Combining<'f> {
    files: &'f [Arc<Archive>],
    table: FileTable,
}

impl Combining<'_> {
    fn group(&self, (file, number, links): CombinedGroup) -> Group {
        let link = |(name, kind, number): (String, String, usize)| {
            (name, if kind == "group" { Link::Group(number) } else { Link::Array(number) })
        };
        let own = self.files.get(file).and_then(|file| file.tree.groups.get(number));
        let attributes = own.map_or_else(Vec::new, |group| group.attributes.clone());
        Group { attributes, links: links.into_iter().map(link).collect() }
    }

    fn array(&mut self, combined: &CombinedArray) -> Result<Array, Problem> {
        let first = combined.files.first().zip(combined.arrays.first());
        let Some(described) = first.and_then(|(&file, &array)| self.files.get(file)?.tree.arrays.get(array))
        else {
            return Err(Problem::from(Unreadable::damaged("an array of no file")));
        };
        let mut array = match &combined.values {
            Some(values) => inline(described, values)?,
            None => self.concatenated(combined, described)?,
        };
        let is_kept = |own: &&Attribute| {
            !own.value.as_ref().is_ok_and(|value| is_reference(&value.element))
                && !combined.dropped.contains(&own.name)
        };
        let new = combined.texts.iter().map(|(name, value)| text(name, value));
        array.attributes = described.attributes.iter().filter(is_kept).cloned().chain(new).collect();
        Ok(array)
    }

    fn concatenated(&mut self, combined: &CombinedArray, described: &Array) -> Result<Array, Problem> {
        let element = combined.element.as_deref().map(element).transpose()?;
        let element = element.unwrap_or_else(|| described.element.clone());
        let mut parts = Vec::with_capacity(combined.files.len());
        for (position, (&file, &number)) in combined.files.iter().zip(&combined.arrays).enumerate() {
            let kind = combined.kinds.get(position).and_then(|kind| combined.conversions.get(kind));
            let part = self.part(file, number, kind, &element)?;
            if let Err(reason) = &part.segments {
                return Ok(Array { segments: Err(reason.clone()), ..described.clone() });
            }
            parts.push(if combined.is_stacked { with_new_axis(&part)? } else { part });
            if combined.axis.is_none() {
                break;
            }
        }
        Ok(match combined.axis {
            Some(axis) => concatenate(&parts, axis)?,
            None => parts.pop().ok_or_else(|| Unreadable::damaged("an array of no file"))?,
        })
    }

    /// An array of one file. Its chunks refer to files by the collection's numbers.
    fn part(
        &mut self,
        position: usize,
        number: usize,
        conversion: Option<&Conversion>,
        element: &Element,
    ) -> Result<Array, Problem> {
        let file = self.files.get(position).filter(|file| number < file.tree.arrays.len());
        let file = file.ok_or_else(|| Unreadable::damaged("an array of no file"))?;
        let whole = WholeArray::listed(file, number)?;
        let share = matches!(file.kind, ArchiveKind::Collection(_)); // its arrays share one numbering
        let stores = if share { &file.stores } else { whole.stores() };
        let numbers = self.table.numbers(position, file, stores);
        let mut array = renumbered(whole.array(), &numbers);
        if let Err(reason) = &mut array.segments {
            *reason = told(reason, &file.name);
            return Ok(array);
        }
        if let Some(stored_as) = conversion.and_then(|one| one.stored_as.as_deref()) {
            let stored = self::element(stored_as)?;
            array.segments.iter_mut().flatten().for_each(|segment| segment.element = stored.clone());
            array.element = stored;
        }
        let packing = conversion.and_then(|one| one.packing.as_ref());
        if packing.is_none() && same_bytes(&array.element, element) {
            return Ok(array);
        }
        Ok(recoded(&array, packing, element)?)
    }
}

/// Copies the array without attributes. Copies each manifest once, however many segments use it.
fn renumbered(array: &Array, numbers: &[FileIndex]) -> Array {
    let number = |index: FileIndex| {
        let position = usize::try_from(index).ok();
        position.and_then(|position| numbers.get(position).copied()).unwrap_or(FileIndex::MAX)
    };
    let mut moved: HashMap<*const Manifest, Arc<Manifest>> = HashMap::new();
    let mut renumber = |segment: &Segment| {
        let manifest = moved.entry(Arc::as_ptr(&segment.manifest));
        let manifest = manifest.or_insert_with(|| Arc::new(segment.manifest.moved(number, 0)));
        Segment { manifest: Arc::clone(manifest), ..segment.clone() }
    };
    Array {
        shape: array.shape.clone(),
        max_shape: array.max_shape.clone(),
        element: array.element.clone(),
        fill: array.fill.clone(),
        is_chunked: array.is_chunked,
        notes: array.notes.clone(),
        segments: array
            .segments
            .as_ref()
            .map_err(Clone::clone)
            .map(|all| all.iter().map(&mut renumber).collect()),
        virtual_mappings: VirtualMappings::NONE,
        dimensions: array.dimensions.clone(),
        attributes: Vec::new(),
        role: role(array),
    }
}

/// Why an array cannot be read, with the name of its file.
fn told(reason: &Unreadable, file: &str) -> Unreadable {
    match reason {
        Unreadable::Unsupported { feature } => Unreadable::unsupported(format!("{feature} (in {file})")),
        Unreadable::Damaged { problem } => Unreadable::damaged(format!("{problem} (in {file})")),
        Unreadable::Unfetched { problem } => {
            Unreadable::Unfetched { problem: format!("{problem} (in {file})") }
        }
    }
}

/// Another array's description with elements that are already in memory.
fn inline(like: &Array, (dtype, shape, bytes): &(String, Vec<u64>, Vec<u8>)) -> Result<Array, Problem> {
    let element = element(dtype)?;
    let origin = vec![0; shape.len()];
    let chunk_shape = shape.iter().map(|&length| length.max(1)).collect();
    let segment = Segment {
        axes: SegmentAxis::of_box(&origin, shape, &origin).map_err(PlanError::from)?,
        grid: ChunkGrid::new(shape.clone(), chunk_shape).map_err(PlanError::from)?,
        codecs: Vec::new(),
        element: element.clone(),
        plain_edge_chunks: false,
        manifest: Arc::new(Manifest::of_inline(bytes.clone())),
        fill: Fill::Zero,
    };
    Ok(Array {
        shape: Some(shape.clone()),
        element,
        fill: Fill::Zero,
        is_chunked: false,
        notes: Notes::default(),
        segments: Ok(vec![segment]),
        virtual_mappings: VirtualMappings::NONE,
        attributes: Vec::new(),
        max_shape: like.max_shape.clone(),
        dimensions: like.dimensions.clone(),
        role: if role(like) == Role::DimensionOnly { Role::DimensionOnly } else { Role::Plain },
    })
}

fn is_reference(element: &Element) -> bool {
    match element {
        Element::ObjectReference { .. } | Element::RegionReference { .. } => true,
        Element::Vlen { element, .. } | Element::Array { element, .. } => is_reference(element),
        Element::Compound { fields, .. } => fields.iter().any(|field| is_reference(&field.element)),
        _ => false,
    }
}

fn text(name: &str, value: &str) -> Attribute {
    let nbytes = (value.len() as u64).max(1);
    let element = Element::FixedString { nbytes, padding: StringPadding::NullPadded, charset: Charset::Utf8 };
    let mut bytes = value.as_bytes().to_vec();
    bytes.resize(usize::try_from(nbytes).unwrap_or(1), 0);
    let value = Value { element, shape: Some(Vec::new()), bytes, heap: Vec::new() };
    Attribute { name: name.to_owned(), value: Ok(value) }
}

/// A number in NumPy's dtype notation.
fn element(dtype: &str) -> Result<Element, Unreadable> {
    let mut signs = dtype.chars();
    let order = if signs.next() == Some('>') { ByteOrder::Big } else { ByteOrder::Little };
    let kind = signs.next();
    let made = signs.as_str().parse::<u64>().ok().and_then(|nbytes| match kind? {
        'i' => Some(Element::integer(nbytes, true, order)),
        'u' => Some(Element::integer(nbytes, false, order)),
        'f' => Element::float(nbytes, order),
        _ => None,
    });
    made.ok_or_else(|| Unreadable::unsupported(format!("elements of dtype {dtype}")))
}
