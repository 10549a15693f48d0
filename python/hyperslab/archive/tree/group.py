"""`Group`: the tree of an archive. Links are followed when you use them; a walk visits everything once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from functools import partial
from typing import Any

from hyperslab._core import ArchiveFile
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.attributes import Attributes
from hyperslab.archive.tree.open_file import OpenFile, Place
from hyperslab.archive.views import display, display_html
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, NotAllowed, Unsupported, printable

# What a broken link or an unusable object raises. A failed fetch or a changed file must never be taken for one.
NOWHERE = (KeyError, FileNotFoundError, DamagedFile, Unsupported, NotAllowed)


class Group(Mapping[str, "Group | Array"]):
    """A group of an archive: a mapping of names to groups and arrays, as in h5py and Zarr."""

    def __init__(self, file: OpenFile, number: int, name: str) -> None:
        self._file = file
        self._number = number
        self.name = name

    @property
    def opened(self) -> OpenFile:
        """The open file, which all of its groups and arrays share."""
        return self._file

    @property
    def filename(self) -> str:
        """The path of the file, or its URL without query and credentials."""
        return self._file.path

    @property
    def url(self) -> str | None:
        """The URL that was opened, including user and query; None for a local file."""
        return self._file.url

    @property
    def file(self) -> ArchiveFile:
        """The compiled part of the open file, shared by all of its groups."""
        return self._file.core

    @property
    def format(self) -> str:
        """The format of the file: "hdf5", "netcdf3", "fits", "hdf4", "zarr", "references", "dmrpp" or "collection"."""
        return self._file.core.format

    @property
    def lost_nbytes(self) -> int:
        """How many bytes are missing at the end of the file, because it was truncated or never closed; 0 if unknown."""
        return self._file.core.lost_nbytes

    @property
    def key(self) -> tuple[int, int]:
        """What identifies the group while its file is open, whichever link led to it."""
        return (id(self._file), self._number)

    @cached_property
    def attrs(self) -> Attributes:
        """The attributes, in the order of the file."""
        return Attributes(self._file.core.attributes(self._number))

    @property
    def groups(self) -> dict[str, Group]:
        """The groups in this group, by name, without broken links and without damaged or unsupported objects.

        Raises
        ------
        ReadError
            A child could not be fetched.
        """
        return {name: child for name, child in self._children() if isinstance(child, Group)}

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays in this group, by name; the same are left out as for `groups`, and the same errors raised."""
        return {name: child for name, child in self._children() if isinstance(child, Array)}

    def _children(self) -> Iterator[tuple[str, Group | Array]]:
        for name in self:
            try:
                yield name, self[name]
            except NOWHERE:
                continue

    def walk(self) -> Iterator[Array]:
        """Yield every array below this group, each once, however many links lead to it."""
        seen = set()
        for group in self.walk_groups():
            for array in group.arrays.values():
                if array.key not in seen:
                    seen.add(array.key)
                    yield array

    def walk_groups(self) -> Iterator[Group]:
        """Yield this group and every group below it, each once, however many links lead to it."""
        return (group for _, group in groups_by_path(self))

    def kinds(self) -> list[tuple[str, str]]:
        """List each name with its kind: group, array, soft, external, damaged, unfetched or unsupported."""
        return [(name, kind) for name, (kind, _) in self._file.links(self._number).items()]

    def __getitem__(self, path: str) -> Group | Array:
        """Get the group or array at a path; a path from the root starts with "/".

        If a Zarr hierarchy is a single array without a group, its path is `""`.

        Parameters
        ----------
        path : str
            Names with slashes between them, from this group or from the root.

        Returns
        -------
        Group | Array
            The group or array; links are followed, also to other files.

        Raises
        ------
        KeyError
            There is nothing at the path, or links lead in a circle.
        FileNotFoundError
            A link leads to another file, which does not exist.
        Unsupported
            The object uses a feature that hyperslab cannot read.
        DamagedFile
            The object is damaged.
        ReadError
            The metadata of the object could not be fetched.
        """
        if not isinstance(path, str):
            raise TypeError(f"{path!r} is not a name: {self._wanted()}")
        return self._made(self._place.below(path))

    @property
    def _place(self) -> Place:
        return Place(self._file, True, self._number, self.name)

    def _wanted(self) -> str:
        """What names an object here."""
        return "the store is one array, whose path is ''" if "" in list(self) else "use the path of a group or array"

    def _made(self, place: Place) -> Group | Array:
        """The group or array at a place."""
        return (Group if place.is_group else Array)(place.file, place.number, place.name)

    def get(self, name: str, default: Any = None) -> Any:
        """Get the group or array at a path, or `default` if there is none, as for the name of a committed datatype.

        Raises
        ------
        DamagedFile
            The object is damaged.
        ReadError
            The metadata of the object could not be fetched.
        """
        try:
            return self[name]
        except (KeyError, FileNotFoundError, Unsupported):
            return default

    def items(self) -> ItemsView[str, Group | Array]:
        """The groups and arrays in this group with their names, in the order of the file.

        The names of committed datatypes, broken links, and damaged or unsupported objects are left out, as in `groups`;
        `keys()` has them all.
        """
        return dict(self._children()).items()

    def values(self) -> ValuesView[Group | Array]:
        """The groups and arrays in this group, in the order of the file; the same are left out as in `items`."""
        return dict(self._children()).values()

    def visititems(self, visit: Callable[[str, Group | Array], Any]) -> Any:
        """Call `visit(path, found)` for every group and array below this group, until it returns something (as h5py).

        Each group and array is visited once. Soft and external links are not followed; damaged and unsupported objects
        are left out.

        Parameters
        ----------
        visit : Callable[[str, Group | Array], Any]
            Called with the path relative to this group, and the group or array.

        Returns
        -------
        Any
            The first value that `visit` returned, other than None; otherwise None.
        """
        return visit_own(self, visit)

    def __setitem__(self, path: str, value: object) -> None:
        raise TypeError(f"{self._file.path} is read-only: hyperslab does not write archives; use h5py or zarr-python")

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.links(self._number))

    def __len__(self) -> int:
        return len(self._file.links(self._number))

    def __contains__(self, path: object) -> bool:
        """Whether there is such a name, even if it is a broken link (as in h5py).

        Raises
        ------
        ReadError
            A group on the path could not be fetched.
        """
        if not isinstance(path, str):
            return False
        start = self._file.root if path.startswith("/") else self._place
        parent, _, name = path.strip("/").rpartition("/")
        try:
            group = start.below(parent)
        except NOWHERE:
            return False
        return not name or (group.is_group and name in group.file.links(group.number))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        head = f"<hyperslab.Group {self.name!r} of {printable(self.filename)}>"
        return display.tree(head, branches(self))

    def _repr_html_(self) -> str:
        return display_html.tree(self.name, self.filename, lambda: self.attrs, branches(self))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (found_again, (self._file, self.name))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return self._file.token(self.name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def root_of(file: OpenFile) -> Group:
    """The root group of an open file."""
    return Group(file, 0, "/")


def found_again(file: OpenFile, name: str) -> Group | Array:
    """What a pickled group becomes."""
    root = root_of(file)
    return root if name == "/" else root[name]


def branches(group: Group, above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[display.Branch]:
    """What is shown of each name in a group. A group that holds itself is not entered again."""
    above |= {group.key}
    for name in group:
        try:
            child = group[name]
        except Exception as error:  # a repr never raises
            yield display.Branch(name, f": {error.args[0] if error.args else repr(error)}")
            continue
        if isinstance(child, Array):
            yield child.branch(name)
        elif child.key in above:
            yield display.Branch(f"{name}/", " (again)")
        else:
            yield display.Branch(f"{name}/", "", partial(_attributes_of, child), partial(branches, child, above))


def _attributes_of(group: Group) -> Attributes:
    return group.attrs


def groups_by_path(top: Group) -> Iterator[tuple[str, Group]]:
    """Yield a group and every group below it once, each with the relative path that led to it; "" is the group itself.

    Soft and external links are followed last, so a group with a hard link is found by that. Broken links are left out.
    """
    seen, waiting = {top.key}, [("", top)]
    links: deque[tuple[str, Group, str]] = deque()
    while waiting or links:
        if not waiting:
            path, parent, name = links.popleft()
            target = _reached(parent, name)
            if isinstance(target, Group) and target.key not in seen:
                seen.add(target.key)
                waiting.append((path, target))
            continue
        path, group = waiting.pop()
        yield path, group
        inner = []
        for name, kind in group.kinds():
            below = f"{path}/{name}" if path else name
            if kind in ("soft", "external"):
                links.append((below, group, name))
            elif kind == "group":
                child = _reached(group, name)
                if isinstance(child, Group) and child.key not in seen:
                    seen.add(child.key)
                    inner.append((below, child))
        waiting += reversed(inner)


def _reached(parent: Group, name: str) -> Group | Array | None:
    try:
        return parent[name]
    except NOWHERE:
        return None


def links_to_nowhere(group: Group) -> Iterator[tuple[str, str]]:
    """Yield each link of a group that is broken, or that may not be followed, with the reason."""
    for name, kind in group.kinds():
        if kind in ("soft", "external"):
            try:
                group[name]
            except NOWHERE as error:
                yield name, str(error.args[0] if isinstance(error, KeyError) and error.args else error)


def visit_own(top: Group, visit: Callable[[str, Group | Array], Any]) -> Any:
    """Call `visit(path, found)` once for each object below a group that has a hard link, until it returns something."""
    seen: set[tuple[bool, tuple[int, int]]] = {(True, top.key)}
    waiting = [("", _own(top))]  # an explicit stack, because archives may be nested deeply
    while waiting:
        prefix, children = waiting[-1]
        name, child = next(children, ("", None))
        if child is None:
            waiting.pop()
            continue
        key = (isinstance(child, Group), child.key)
        if key in seen:
            continue
        seen.add(key)
        returned = visit(prefix + name, child)
        if returned is not None:
            return returned
        if isinstance(child, Group):
            waiting.append((f"{prefix}{name}/", _own(child)))
    return None


def _own(group: Group) -> Iterator[tuple[str, Group | Array]]:
    for name, kind in group.kinds():
        child = _reached(group, name) if kind in ("group", "array") else None
        if child is not None:
            yield name, child
