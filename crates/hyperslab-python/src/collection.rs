//! Files as one archive: what they have in common, and arrays made of theirs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{
    Along, Array, Attribute, ByteOrder, Charset, ChunkGrid, Counterparts, Element, FileIndex, Fill, Group,
    Link, Manifest, Packing, PlanError, Role, Segment, SegmentAxis, StringPadding, Tree, Unreadable, Value,
    VirtualMappings, concatenate, counterparts, recoded, same_bytes, with_new_axis,
};
use hyperslab_engine::{
    ChunkCache, FarStore, FileStore, Identity, Opener, OtherFile, ReadError, Store, Stores,
};
use pyo3::prelude::*;

use crate::archive_file::{ArchiveFile, Bytes, Heap, OpenCollection, Opened};
use crate::errors;
use crate::format::Format;
use crate::stored_array::role;
use crate::virtual_sources::{Problem, WholeArray};

/// Paths, files, arrays, kinds, axes and lengths of one row of counterparts.
pub(crate) type Columns = (String, Vec<usize>, Vec<usize>, Vec<usize>, Vec<Option<usize>>, Vec<Option<u64>>);

/// Masked numbers, factor, offset, and whether to calculate with 32 bits.
type PackedBy = (Vec<f64>, Option<f64>, Option<f64>, bool);

/// How the elements of one kind of counterparts become those of the array made of them.
#[derive(FromPyObject)]
pub(crate) struct Conversion {
    /// What is stored, taken as another element of its width: integers with a sign as ones without.
    stored_as: Option<String>,
    packing: Option<PackedBy>,
}

/// An array made of counterparts; the columns have one entry for each.
#[derive(FromPyObject)]
pub(crate) struct Recipe {
    files: Vec<usize>,
    arrays: Vec<usize>,
    kinds: Vec<usize>,
    /// By kind; those that are not there are as they are.
    conversions: HashMap<usize, Conversion>,
    /// The axis along which they are concatenated; None for the first one alone.
    axis: Option<usize>,
    /// Whether that axis is a new one.
    is_stacked: bool,
    /// The element; None for the first one's.
    element: Option<String>,
    /// Attributes of the first that are left out.
    dropped: Vec<String>,
    /// Attributes that are put in their place.
    texts: Vec<(String, String)>,
    /// Element, shape and bytes, if the elements are at hand.
    values: Option<(String, Vec<u64>, Vec<u8>)>,
}

/// A group: the file and number whose attributes it has, and its links as name, kind and number.
pub(crate) type GroupRecipe = (usize, usize, Vec<(String, String, usize)>);

/// The groups of several files, as path, file and number, and their arrays by path.
#[pyfunction]
#[pyo3(name = "counterparts")]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn find_counterparts(
    py: Python<'_>,
    files: Vec<Bound<'_, ArchiveFile>>,
    dimension: Option<String>,
    axis: Option<usize>,
    ignored: Vec<String>,
) -> (Vec<(String, usize, usize)>, Vec<Columns>) {
    let along = match (dimension, axis) {
        (Some(name), _) => Along::Dimension(name),
        (None, Some(axis)) => Along::Axis(axis),
        (None, None) => Along::Nothing,
    };
    let files: Vec<Arc<Opened>> = files.iter().map(|file| file.get().opened()).collect();
    py.detach(|| {
        let trees: Vec<&Tree> = files.iter().map(|file| &file.tree).collect();
        let ignored: Vec<&str> = ignored.iter().map(String::as_str).collect();
        let (groups, found) = counterparts(&trees, &along, &ignored);
        let columns = |own: Counterparts| (own.path, own.files, own.arrays, own.kinds, own.axes, own.lengths);
        (groups, found.into_iter().map(columns).collect())
    })
}

/// An archive of arrays that are made of several files'.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as above
pub(crate) fn combine(
    py: Python<'_>,
    name: String,
    version: String,
    files: Vec<Bound<'_, ArchiveFile>>,
    groups: Vec<GroupRecipe>,
    arrays: Vec<(String, Recipe)>,
    chunk_cache_nbytes: usize,
) -> PyResult<ArchiveFile> {
    let files: Vec<Arc<Opened>> = files.iter().map(|file| file.get().opened()).collect();
    let made = py.detach(|| {
        let mut combining = Combining { files: &files, ..Combining::default() };
        let mut tree = Tree::default();
        for (path, recipe) in &arrays {
            tree.arrays.push(combining.array(recipe).map_err(|problem| (path.clone(), problem))?);
        }
        tree.groups = groups.into_iter().map(|recipe| combining.group(recipe)).collect();
        Ok::<_, (String, Problem)>((tree, combining.table))
    });
    let (tree, table) = made.map_err(|(array, problem)| match problem {
        Problem::Plan(problem) => errors::of_read(ReadError::Plan { file: name.clone(), array, problem }),
        Problem::File(path, failure) => failure.into_python(&path),
    })?;
    let heaps = heaps(&files, &tree, &arrays, &table);
    let identities = identities(&files);
    let far_requests = files.iter().filter_map(|file| file.stores.far_requests()).max();
    let stores = Stores::of_files(name.clone(), table.files, opener(table.openers), far_requests);
    let (path, cache) = (Path::new(&name).to_owned(), ChunkCache::new(chunk_cache_nbytes));
    let bytes = Bytes::Collection(Box::new(OpenCollection { version, heaps, identities }));
    let hidden = files.first().map_or(&[][..], |file| file.hidden);
    let mut opened = Opened::new(name, &path, Format::Collection, tree, bytes, stores, cache);
    opened.hidden = hidden;
    Ok(ArchiveFile::of(opened))
}

/// The files whose bytes the elements of arrays point into.
fn heaps(
    files: &[Arc<Opened>],
    tree: &Tree,
    arrays: &[(String, Recipe)],
    table: &FileTable,
) -> HashMap<usize, Heap> {
    let pointed = tree.arrays.iter().zip(arrays).enumerate();
    let pointed = pointed.filter(|(_, (array, _))| array.element.has_pointers());
    let heap = |recipe: &Recipe| {
        let (place, array) = recipe.files.first().zip(recipe.arrays.first())?;
        let file = files.get(*place)?;
        let Bytes::Collection(open) = &file.bytes else {
            return Some(Heap { file: Arc::clone(file), number: *table.own.get(place)? });
        };
        let inner = open.heaps.get(array)?;
        let numbers = table.numbers.get(&address(&file.stores))?;
        let number = *numbers.get(usize::try_from(inner.number).ok()?)?;
        Some(Heap { file: Arc::clone(&inner.file), number })
    };
    pointed.filter_map(|(number, (_, (_, recipe)))| Some((number, heap(recipe)?))).collect()
}

fn identities(files: &[Arc<Opened>]) -> HashMap<PathBuf, Identity> {
    let mut found = HashMap::new();
    for file in files {
        match &file.bytes {
            Bytes::Remote(store) => found.extend(store.identity().map(|known| (file.path.clone(), known))),
            Bytes::Collection(open) => found.extend(open.identities.clone()),
            _ => {}
        }
    }
    found
}

/// Opens the files of a collection, each as the archive would that it comes from.
fn opener(openers: HashMap<PathBuf, Own>) -> Opener {
    Arc::new(move |path: &Path| match openers.get(path) {
        Some((_, open)) => open(path),
        None => Ok(Arc::new(FileStore::open(path)?) as Arc<dyn Store>),
    })
}

/// What opens a file, and the number of the archive that alone knows which file its name means, if that is so.
type Own = (Option<usize>, Opener);

/// The files that chunks of a collection lie in, and what opens those that are no local files.
#[derive(Default)]
struct FileTable {
    files: Vec<OtherFile>,
    openers: HashMap<PathBuf, Own>,
    /// The numbers of an archive's files here, by the address of its stores; number 0 is the opened one.
    numbers: HashMap<usize, Arc<Vec<FileIndex>>>,
    /// The numbers of opened files, by the archive's.
    own: HashMap<usize, FileIndex>,
}

impl FileTable {
    /// Files are told apart by their names. Where two files have one, as URLs have whose queries differ, which are not
    /// shown, the second is numbered.
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

    /// The numbers of the files that an array of an archive lies in.
    fn numbers(&mut self, number: usize, file: &Opened, stores: &Stores) -> Arc<Vec<FileIndex>> {
        let key = address(stores);
        if let Some(known) = self.numbers.get(&key) {
            return Arc::clone(known);
        }
        let own = self.own.get(&number).copied().unwrap_or_else(|| {
            let own = file.own_file().map(|own| self.push(own, file.own_opener(), Some(number)));
            *self.own.entry(number).or_insert(own.unwrap_or(FileIndex::MAX))
        });
        let is_local = matches!(file.bytes, Bytes::Local(_) | Bytes::Closed(_) | Bytes::Folder);
        let is_plain = is_local && !file.reach.allowed().is_narrow();
        let open = (!is_plain).then(|| Arc::clone(stores.opener()));
        let owner = matches!(file.bytes, Bytes::Collection(_)).then_some(number);
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
    files: &'f [Arc<Opened>],
    table: FileTable,
}

impl Combining<'_> {
    fn group(&self, (file, number, links): GroupRecipe) -> Group {
        let link = |(name, kind, number): (String, String, usize)| {
            (name, if kind == "group" { Link::Group(number) } else { Link::Array(number) })
        };
        let own = self.files.get(file).and_then(|file| file.tree.groups.get(number));
        let attributes = own.map_or_else(Vec::new, |group| group.attributes.clone());
        Group { attributes, links: links.into_iter().map(link).collect() }
    }

    fn array(&mut self, recipe: &Recipe) -> Result<Array, Problem> {
        let first = recipe.files.first().zip(recipe.arrays.first());
        let Some(described) = first.and_then(|(&file, &array)| self.files.get(file)?.tree.arrays.get(array))
        else {
            return Err(Problem::from(Unreadable::damaged("an array of no file")));
        };
        let mut array = match &recipe.values {
            Some(values) => inline(described, values)?,
            None => self.concatenated(recipe, described)?,
        };
        let is_kept = |own: &&Attribute| {
            !own.value.as_ref().is_ok_and(|value| is_reference(&value.element))
                && !recipe.dropped.contains(&own.name)
        };
        let new = recipe.texts.iter().map(|(name, value)| text(name, value));
        array.attributes = described.attributes.iter().filter(is_kept).cloned().chain(new).collect();
        Ok(array)
    }

    fn concatenated(&mut self, recipe: &Recipe, described: &Array) -> Result<Array, Problem> {
        let element = recipe.element.as_deref().map(element).transpose()?;
        let element = element.unwrap_or_else(|| described.element.clone());
        let mut parts = Vec::with_capacity(recipe.files.len());
        for (place, (&file, &number)) in recipe.files.iter().zip(&recipe.arrays).enumerate() {
            let kind = recipe.kinds.get(place).and_then(|kind| recipe.conversions.get(kind));
            let part = self.part(file, number, kind, &element)?;
            if let Err(reason) = &part.segments {
                return Ok(Array { segments: Err(reason.clone()), ..described.clone() });
            }
            parts.push(if recipe.is_stacked { with_new_axis(&part)? } else { part });
            if recipe.axis.is_none() {
                break;
            }
        }
        Ok(match recipe.axis {
            Some(axis) => concatenate(&parts, axis)?,
            None => parts.pop().ok_or_else(|| Unreadable::damaged("an array of no file"))?,
        })
    }

    /// An array of one file, with the collection's numbers for the files of its chunks.
    fn part(
        &mut self,
        place: usize,
        number: usize,
        conversion: Option<&Conversion>,
        element: &Element,
    ) -> Result<Array, Problem> {
        let file = self.files.get(place).filter(|file| number < file.tree.arrays.len());
        let file = file.ok_or_else(|| Unreadable::damaged("an array of no file"))?;
        let whole = WholeArray::listed(file, number)?;
        let share = matches!(file.bytes, Bytes::Collection(_)); // its arrays share one numbering
        let stores = if share { &file.stores } else { whole.stores() };
        let numbers = self.table.numbers(place, file, stores);
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
        let packing = conversion.and_then(|one| one.packing.clone());
        let packing =
            packing.map(|(masked, scale, offset, is_single)| Packing { masked, scale, offset, is_single });
        if packing.is_none() && same_bytes(&array.element, element) {
            return Ok(array);
        }
        Ok(recoded(&array, packing.as_ref(), element)?)
    }
}

/// Without attributes; each manifest once, however many segments show its chunks.
fn renumbered(array: &Array, numbers: &[FileIndex]) -> Array {
    let number = |index: FileIndex| {
        let place = usize::try_from(index).ok();
        place.and_then(|place| numbers.get(place).copied()).unwrap_or(FileIndex::MAX)
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

/// Why an array cannot be had, with the file that it is in.
fn told(reason: &Unreadable, file: &str) -> Unreadable {
    match reason {
        Unreadable::Unsupported { feature } => Unreadable::unsupported(format!("{feature} (in {file})")),
        Unreadable::Damaged { problem } => Unreadable::damaged(format!("{problem} (in {file})")),
        Unreadable::Unfetched { problem } => {
            Unreadable::Unfetched { problem: format!("{problem} (in {file})") }
        }
    }
}

/// An array like another one, of elements at hand.
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

/// A number as NumPy writes its dtype.
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
