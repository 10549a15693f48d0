//! Archives combined into one: what they have in common, and arrays made of theirs.

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

/// How the elements of one kind of counterparts become those of the array made of them.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    /// What is stored, taken as another element of its width, as NumPy writes its dtype: integers with a sign as ones
    /// without.
    pub stored_as: Option<String>,
    /// How stored numbers are unpacked.
    pub packing: Option<Packing>,
}

/// An array made of counterparts; the columns have one entry for each.
#[derive(Clone, Debug, Default)]
pub struct CombinedArray {
    /// By their places, the archives that the counterparts are of.
    pub files: Vec<usize>,
    /// Their numbers in these.
    pub arrays: Vec<usize>,
    /// Their kinds: those of one kind are converted alike.
    pub kinds: Vec<usize>,
    /// By kind; those that are not there are as they are.
    pub conversions: HashMap<usize, Conversion>,
    /// The axis along which they are concatenated; `None` for the first one alone.
    pub axis: Option<usize>,
    /// Whether that axis is a new one.
    pub is_stacked: bool,
    /// The element, as NumPy writes its dtype; `None` for the first one's.
    pub element: Option<String>,
    /// Attributes of the first that are left out.
    pub dropped: Vec<String>,
    /// Attributes that are put in their place.
    pub texts: Vec<(String, String)>,
    /// Element, shape and bytes, if the elements are at hand.
    pub values: Option<(String, Vec<u64>, Vec<u8>)>,
}

/// A group: the file and number whose attributes it has, and its links as name, kind and number.
pub type CombinedGroup = (usize, usize, Vec<(String, String, usize)>);

/// The groups of several archives, as path, file and number, and their arrays by path.
pub fn find_counterparts(
    archives: &[Arc<Archive>],
    along: &Along,
    ignored: &[&str],
) -> (Vec<(String, usize, usize)>, Vec<Counterparts>) {
    let trees: Vec<&Tree> = archives.iter().map(|archive| &archive.tree).collect();
    counterparts(&trees, along, ignored)
}

impl Archive {
    /// An archive called `name` of arrays that are made of several archives'; arrays have their paths for errors.
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
        for (path, recipe) in arrays {
            let array = combining.array(recipe).map_err(|problem| problem.of_array(&name, path))?;
            tree.arrays.push(array);
        }
        tree.groups = groups.into_iter().map(|recipe| combining.group(recipe)).collect();
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

/// The files whose bytes the elements of arrays point into.
fn heaps(
    files: &[Arc<Archive>],
    tree: &Tree,
    arrays: &[(String, CombinedArray)],
    table: &FileTable,
) -> HashMap<usize, Heap> {
    let pointed = tree.arrays.iter().zip(arrays).enumerate();
    let pointed = pointed.filter(|(_, (array, _))| array.element.has_pointers());
    let heap = |recipe: &CombinedArray| {
        let (place, array) = recipe.files.first().zip(recipe.arrays.first())?;
        let file = files.get(*place)?;
        let ArchiveKind::Collection(open) = &file.kind else {
            return Some(Heap { file: Arc::clone(file), number: *table.own.get(place)? });
        };
        let inner = open.heaps.get(array)?;
        let numbers = table.numbers.get(&address(&file.stores))?;
        let number = *numbers.get(usize::try_from(inner.number).ok()?)?;
        Some(Heap { file: Arc::clone(&inner.file), number })
    };
    pointed.filter_map(|(number, (_, (_, recipe)))| Some((number, heap(recipe)?))).collect()
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

    fn array(&mut self, recipe: &CombinedArray) -> Result<Array, Problem> {
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

    fn concatenated(&mut self, recipe: &CombinedArray, described: &Array) -> Result<Array, Problem> {
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
        let share = matches!(file.kind, ArchiveKind::Collection(_)); // its arrays share one numbering
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
        let packing = conversion.and_then(|one| one.packing.as_ref());
        if packing.is_none() && same_bytes(&array.element, element) {
            return Ok(array);
        }
        Ok(recoded(&array, packing, element)?)
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
