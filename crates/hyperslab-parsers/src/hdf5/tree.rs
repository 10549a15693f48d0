//! From a finished walk to the tree: groups and arrays are numbered from the root on, links lead to numbers.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

use hyperslab_core::{
    Array, Attribute, Element, Fill, Group, Link, Notes, ObjectNames, Role, Segment, Tree, Unreadable,
    with_ieee_floats,
};

use super::attribute::{self, RawAttribute};
use super::external;
use super::layout::Layout;
use super::lazy_index::LazyIndex;
use super::links::{NamedLink, Target};
use super::netcdf4::{self, ArrayNames};
use super::object::StorageDescription;
use super::storage::Storage;
use super::walk::{ArrayState, GroupState, Object, State, Walk};
use crate::error::Error;

/// The tree of a walk, and for each array what leads to chunks that were not looked up. If the root cannot be read, the
/// file cannot.
pub(crate) fn tree(walk: Walk, file_length: u64) -> Result<(Tree, Vec<Option<LazyIndex>>), Error> {
    let sizes = walk.file.sizes;
    match walk.objects.first() {
        Some(Object { state: State::Group(_), .. }) => {}
        Some(Object { state: State::Failed(problem), .. }) => return Err(problem.clone()),
        other => {
            let address = other.map_or(0, |object| object.address);
            return Err(Error::invalid("root group", address, "it is not a group"));
        }
    }
    let numbering = Numbering::new(&walk);
    let type_names = TypeNames::new(&walk, &numbering.names);
    let mut building = Building { tree: Tree::default(), file_length };
    let mut arrays: Vec<Option<Array>> = numbering.array_names.iter().map(|_| None).collect();
    let mut groups: Vec<Option<Group>> = (0..numbering.group_count).map(|_| None).collect();
    let mut indexes = vec![None; arrays.len()];
    let by_address = walk.by_address;
    for (object, kind) in walk.objects.into_iter().zip(&numbering.kinds) {
        match (object.state, kind) {
            (State::Group(state), Link::Group(number)) => {
                let target =
                    |address| by_address.get(&address).and_then(|&object| numbering.kinds.get(object));
                let links = named(&state, |address| target(address).cloned());
                let group = Group { attributes: attributes(object.attributes), links };
                groups.get_mut(*number).map(|position| position.replace(group));
            }
            (State::Array(mut state), Link::Array(number)) => {
                let lazy_index = state.lazy_index.take();
                let is_whole = lazy_index.is_none();
                if let Some(position) = indexes.get_mut(*number) {
                    *position = lazy_index;
                }
                let type_name = type_names.of(&state.description.element);
                let array = building.array(*state, attributes(object.attributes), type_name);
                let array = if is_whole { with_ieee_floats(array) } else { array };
                arrays.get_mut(*number).map(|position| position.replace(array));
            }
            _ => {}
        }
    }
    building.tree.groups = groups.into_iter().flatten().collect();
    building.tree.arrays = arrays.into_iter().flatten().collect();
    netcdf4::name_dimensions(&mut building.tree, &numbering.array_names, sizes);
    building.tree.names = numbering.names;
    Ok((building.tree, indexes))
}

/// The tree of a walk that began at an array: the array, without name and attributes.
pub(crate) fn of_one_array(walk: Walk, file_length: u64) -> Result<Tree, Error> {
    let Some(object) = walk.objects.into_iter().next() else {
        return Err(Error::invalid("array", 0, "there is none"));
    };
    let state = match object.state {
        State::Array(state) => state,
        State::Failed(problem) => return Err(problem),
        _ => return Err(Error::invalid("array", object.address, "it is not an array")),
    };
    let mut building = Building { tree: Tree::default(), file_length };
    let array = with_ieee_floats(building.array(*state, Vec::new(), None));
    building.tree.arrays.push(array);
    building.tree.groups.push(Group::default());
    Ok(building.tree)
}

/// The number of each object in the tree: breadth-first, along sorted links, so rounds do not change it.
struct Numbering {
    /// By object.
    kinds: Vec<Link>,
    group_count: usize,
    array_names: Vec<ArrayNames>,
    names: ObjectNames,
}

impl Numbering {
    fn new(walk: &Walk) -> Self {
        let unreachable = || Link::Unreadable(Unreadable::damaged("no link leads there"));
        let kinds = walk.objects.iter().map(|_| unreachable()).collect();
        let mut numbering =
            Self { kinds, group_count: 0, array_names: Vec::new(), names: ObjectNames::default() };
        // References count from the base address, as all addresses do.
        let base = walk.file.sizes.base;
        if let Some(root) = walk.objects.first() {
            numbering.names.insert_root(root.address.wrapping_sub(base));
        }
        let mut seen = vec![false; walk.objects.len()];
        let mut queue = VecDeque::from([(0, String::new())]);
        while let Some((number, name)) = queue.pop_front() {
            let (Some(object), Some(seen)) = (walk.objects.get(number), seen.get_mut(number)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            let kind = numbering.kind(object, name);
            if let Some(position) = numbering.kinds.get_mut(number) {
                *position = kind;
            }
            if let State::Group(group) = &object.state {
                for link in sorted(group) {
                    let Target::Object(address) = link.target else { continue };
                    let Some(&child) = walk.by_address.get(&address) else { continue };
                    let (child_position, group_position) =
                        (address.wrapping_sub(base), object.address.wrapping_sub(base));
                    numbering.names.insert(child_position, group_position, &link.name);
                    queue.push_back((child, link.name.clone()));
                }
            }
        }
        numbering
    }

    fn kind(&mut self, object: &Object, name: String) -> Link {
        match &object.state {
            State::Group(_) => {
                self.group_count += 1;
                Link::Group(self.group_count - 1)
            }
            State::Array(_) => {
                self.array_names.push(ArrayNames { address: object.address, name });
                Link::Array(self.array_names.len() - 1)
            }
            State::Datatype(_) => {
                Link::Unreadable(Unreadable::unsupported("a committed datatype, which holds no elements,"))
            }
            State::Failed(problem) => Link::Unreadable(problem.clone().into()),
            State::Waiting => Link::Unreadable(Unreadable::damaged("it was never read")),
        }
    }
}

/// The names of a file's committed enumerations. Arrays have copies of these, recognized by their contents as netCDF-C
/// does.
struct TypeNames(Vec<(Element, String)>);

impl TypeNames {
    fn new(walk: &Walk, names: &ObjectNames) -> Self {
        let base = walk.file.sizes.base;
        let named = |object: &Object| match &object.state {
            State::Datatype(Some(element)) if matches!(**element, Element::Enumeration { .. }) => {
                let path = names.path(object.address.wrapping_sub(base))?;
                Some(((**element).clone(), path.rsplit('/').next()?.to_owned()))
            }
            _ => None,
        };
        Self(walk.objects.iter().filter_map(named).collect())
    }

    fn of(&self, element: &Element) -> Option<String> {
        self.0.iter().find(|(known, _)| known == element).map(|(_, name)| name.clone())
    }
}

/// A group's links in the file's order: creation order if it is tracked, otherwise by name.
fn sorted(group: &GroupState) -> Vec<&NamedLink> {
    let mut links: Vec<&NamedLink> = group.links.iter().collect();
    if group.ordered {
        links.sort_by_key(|link| link.order);
    } else {
        links.sort_by(|one, other| one.name.cmp(&other.name));
    }
    links
}

fn named(group: &GroupState, kind: impl Fn(u64) -> Option<Link>) -> Vec<(String, Link)> {
    let link = |link: &NamedLink| {
        let target = match &link.target {
            Target::Object(address) => {
                kind(*address).unwrap_or_else(|| Link::Unreadable(Unreadable::damaged("no object is there")))
            }
            Target::Soft(path) => Link::Soft(path.clone()),
            Target::External { file, path } => Link::External { file: file.clone(), path: path.clone() },
            Target::UserDefined(kind) => {
                Link::Unreadable(Unreadable::unsupported(format!("a user-defined link of type {kind}")))
            }
        };
        (link.name.clone(), target)
    };
    let mut links: Vec<(String, Link)> = sorted(group).into_iter().map(link).collect();
    for position in repeated(links.iter().map(|(name, _)| name.as_str())) {
        if let Some((_, target)) = links.get_mut(position) {
            *target = Link::Unreadable(Unreadable::damaged("two links of its group have this name"));
        }
    }
    links
}

/// Positions of names that are there more than once.
fn repeated<'n>(names: impl Iterator<Item = &'n str>) -> Vec<usize> {
    let (mut first, mut found) = (HashMap::with_capacity(names.size_hint().0), Vec::new());
    for (position, name) in names.enumerate() {
        match first.entry(name) {
            Entry::Vacant(new) => {
                new.insert(position);
            }
            Entry::Occupied(known) => found.extend([*known.get(), position]),
        }
    }
    found
}

/// Attributes in creation order if it is tracked, otherwise in the header's order; those of a heap by name.
fn attributes(mut raw: Vec<RawAttribute>) -> Vec<Attribute> {
    if raw.iter().all(|raw| raw.order.is_some()) {
        raw.sort_by_key(|raw| raw.order);
    }
    let mut attributes: Vec<Attribute> =
        raw.into_iter().map(|raw| attribute::with_ieee_floats(raw.attribute)).collect();
    for position in repeated(attributes.iter().map(|attribute| attribute.name.as_str())) {
        if let Some(attribute) = attributes.get_mut(position).filter(|attribute| attribute.value.is_ok()) {
            attribute.value = Err(Unreadable::damaged("two attributes of its object have this name"));
        }
    }
    attributes
}

struct Building {
    tree: Tree,
    file_length: u64,
}

impl Building {
    fn array(
        &mut self,
        mut state: ArrayState,
        attributes: Vec<Attribute>,
        type_name: Option<String>,
    ) -> Array {
        let segments = self.segments(&mut state);
        let description = state.description;
        let is_chunked = |storage: &StorageDescription| matches!(storage.layout, Layout::Chunked(_));
        let is_chunked = description.storage.as_ref().is_ok_and(is_chunked);
        let (fill, filters) =
            description.storage.map_or((Fill::Zero, Vec::new()), |storage| (storage.fill, storage.filters));
        Array {
            shape: description.dataspace.shape,
            max_shape: description.dataspace.max_shape,
            element: description.element,
            fill,
            is_chunked,
            notes: Notes { filters, type_name },
            role: Role::default(),
            segments,
            virtual_mappings: state.mappings,
            dimensions: None,
            attributes,
        }
    }

    fn segments(&mut self, state: &mut ArrayState) -> Result<Vec<Segment>, Unreadable> {
        let StorageDescription { layout, codecs, fill, external, .. } =
            state.description.storage.as_ref().map_err(Unreadable::clone)?;
        let Some(shape) = &state.description.dataspace.shape else { return Ok(Vec::new()) };
        let element = &state.description.element;
        if external.is_some() {
            return external::segments(&state.external, shape, element, fill, &mut self.tree.other_files);
        }
        let (shape, codecs) = (shape.clone(), codecs.clone());
        let storage = Storage { shape, element: element.clone(), codecs, fill: fill.clone() };
        match layout {
            Layout::Chunked(layout) => storage.chunks(layout, std::mem::take(&mut state.chunks)),
            Layout::Virtual { .. } => Ok(Vec::new()),
            Layout::Compact(_) | Layout::Contiguous { .. } => storage.plain(layout, self.file_length),
        }
    }
}
