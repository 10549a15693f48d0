"""`Group`: h5py's interface to a group, a mapping from names to groups, datasets and named datatypes."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from hyperslab.h5.dataset import Dataset
from hyperslab.h5.identifiers import DatasetID, GroupID, NamedTypeID
from hyperslab.h5.links import ExternalLink, HardLink, SoftLink
from hyperslab.h5.mappings import MappingHDF5
from hyperslab.h5.names import as_text
from hyperslab.h5.objects import HLObject
from hyperslab.h5.references import Reference
from hyperslab.h5.refused import INSTEAD, refuse
from hyperslab.h5.store import Link, Place

WRITTEN = "create dataset"


class Datatype(HLObject):
    """A named datatype of a file."""

    _id: NamedTypeID

    @property
    def dtype(self) -> np.dtype[Any]:
        """The equivalent NumPy dtype, with h5py's metadata."""
        return self._id.dtype

    def __repr__(self) -> str:
        if not self:
            return "<Closed HDF5 named type>"
        if self.name is None:
            named = '("anonymous")'
        else:
            named = f'"{posixpath.basename(posixpath.normpath(self.name)) or "/"}"'
        return f"<HDF5 named type {named} (dtype {self.dtype.str})>"


def opened(place: Place) -> Group | Dataset | Datatype:
    """Return the group, dataset or named datatype at a place."""
    kind = place.facts["kind"]
    if kind == "group":
        return Group(GroupID(place))
    if kind == "array":
        return Dataset(DatasetID(place))
    return Datatype(NamedTypeID(place))


class Group(MappingHDF5, HLObject):
    """A group of a file: the names of its links, and the objects that they lead to.

    Parameters
    ----------
    bind : GroupID
        The `id` of a group.
    """

    def __init__(self, bind: GroupID) -> None:
        if not isinstance(bind, GroupID):
            raise ValueError(f"{bind} is not a GroupID")
        super().__init__(bind)

    __hash__ = HLObject.__hash__

    def __eq__(self, other: object) -> bool:
        return HLObject.__eq__(self, other)

    def _find(self, name: str) -> Place:
        if not self:
            raise KeyError("Unable to synchronously open object (the file was closed: open it again)")
        return self._store.find(self._place.address, self._id.path, name)

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, Reference):
            return self._dereferenced(name)
        if not isinstance(name, bytes | str):
            raise TypeError(f"Accessing a group is done with bytes or str, not {type(name)}")
        return opened(self._find(as_text(name)))

    def _dereferenced(self, reference: Reference) -> Any:
        self._store.opened  # noqa: B018 -- raises if the file is closed
        if not reference:
            raise ValueError("Invalid HDF5 object reference")
        return opened(Place(self._store, reference.address, None))

    def get(
        self,
        name: Any,
        default: Any = None,
        getclass: bool = False,
        getlink: bool = False,
        elink_mode: str | None = None,
        **_: Any,
    ) -> Any:
        """Return the object of a name, its class, or the link that leads to it.

        Parameters
        ----------
        name : str or bytes
            A path, relative to the group or absolute.
        default : object
            The value to return if there is no such object.
        getclass : bool
            Return the class instead: `Group`, `Dataset` or `Datatype`; with `getlink`, the class of the link.
        getlink : bool
            Return the link instead: `HardLink()`, `SoftLink(path)` or `ExternalLink(filename, path)`.
        elink_mode : {None, "r"}
            How to open the files that external links lead to.
        **_ : Any
            h5py's other options for opening such files. They have no effect here.

        Returns
        -------
        Group, Dataset, Datatype, link, class, or `default`
            What you asked for.

        Raises
        ------
        ValueError
            `elink_mode` is for writing.
        RuntimeError
            The link, or the object whose class you asked for, cannot be read.
        """
        if elink_mode not in (None, "r"):
            raise ValueError(f"Opening external links in write mode is not supported: {INSTEAD}")
        if not (getclass or getlink):
            try:
                return self[name]
            except KeyError:
                return default
        if name not in self:
            return default
        if not getlink:
            try:
                return {"group": Group, "array": Dataset, "datatype": Datatype}[self._find(as_text(name)).facts["kind"]]
            except KeyError as error:
                raise RuntimeError(f"Can't get info for object: {error.args[0]}") from error
        try:
            link = self._store.link(self._place.address, self._id.path, as_text(name))
        except KeyError as error:
            raise RuntimeError(error.args[0]) from error
        return _shown(link, getclass)

    def __contains__(self, name: object) -> bool:
        text = as_text(name)
        if not self:
            return False
        if not text:
            return False
        try:
            self._store.link(self._place.address, self._id.path, text)
        except KeyError:
            return text.strip("/.") == ""
        return True

    def __iter__(self) -> Iterator[str]:
        yield from self._store.links(self._place.address)

    def __reversed__(self) -> Iterator[str]:
        yield from reversed(self._store.links(self._place.address))

    def __len__(self) -> int:
        return len(self._store.links(self._place.address))

    def visit(self, func: Callable[[str], Any]) -> Any:
        """Call `func(name)` once for each object below the group, until it returns something other than None.

        Parameters
        ----------
        func : callable
            Gets the path of the object relative to the group.

        Returns
        -------
        object
            What `func` returned last; None if all objects were visited.
        """
        for name, _ in self._store.below(self._place.address):
            answer = func(name)
            if answer is not None:
                return answer
        return None

    def visititems(self, func: Callable[[str, Any], Any]) -> Any:
        """Call `func(name, object)` once for each object below the group, like `visit`."""
        return self.visit(lambda name: func(name, self[name]))

    def visit_links(self, func: Callable[[str], Any]) -> Any:
        """Call `func(name)` for each link below the group, until it returns something other than None."""
        for name, _ in self._store.links_below(self._place.address):
            returned = func(name)
            if returned is not None:
                return returned
        return None

    def visititems_links(self, func: Callable[[str, Any], Any]) -> Any:
        """Call `func(name, link)` for each link below the group, until it returns something other than None."""
        return self.visit_links(lambda name: func(name, self.get(name, getlink=True)))

    def require_group(self, name: str) -> Group:
        """Return an existing group.

        Raises
        ------
        ValueError
            There is no such group, and the file is open for reading.
        TypeError
            The name leads to something other than a group.
        """
        if name not in self:
            refuse("create group")
        there = self[name]
        if not isinstance(there, Group):
            raise TypeError(f"Incompatible object ({type(there).__name__}) already exists")
        return there

    def require_dataset(self, name: str, shape: Any, dtype: Any, exact: bool = False, **_: Any) -> Dataset:
        """Return an existing dataset.

        Parameters
        ----------
        name : str
            A path.
        shape : int or tuple of int
            The shape that the dataset must have.
        dtype : dtype-like
            A dtype that can be cast safely to the dtype of the dataset.
        exact : bool
            Whether the two dtypes must be equal.
        **_ : Any
            Options for a new dataset. They have no effect here.

        Raises
        ------
        ValueError
            There is no such dataset, and the file is open for reading.
        TypeError
            The name leads to something else, or the shape or dtype does not fit.
        """
        if name not in self:
            refuse(WRITTEN)
        there = self[name]
        if not isinstance(there, Dataset):
            raise TypeError(f"Incompatible object ({type(there).__name__}) already exists")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if shape != there.shape:
            raise TypeError(f"Shapes do not match (existing {there.shape} vs new {shape})")
        dtype = np.dtype(dtype)
        if exact and dtype != there.dtype:
            raise TypeError(f"Datatypes do not exactly match (existing {there.dtype} vs new {dtype})")
        if not np.can_cast(dtype, there.dtype):
            raise TypeError(f"Datatypes cannot be safely cast (existing {there.dtype} vs new {dtype})")
        return there

    def create_group(self, name: str, *_: Any, **__: Any) -> NoReturn:
        """Raise ValueError: the file is open for reading."""
        refuse("create group")

    def create_dataset(self, name: str, *_: Any, **__: Any) -> NoReturn:
        """Raise ValueError: the file is open for reading."""
        refuse(WRITTEN)

    create_dataset_like = create_virtual_dataset = build_virtual_dataset = create_dataset

    def move(self, source: str, dest: str) -> None:
        """Raise ValueError unless both names are equal: the file is open for reading."""
        if source != dest:
            refuse("move link")

    def copy(self, source: Any, dest: Any, *_: Any, **__: Any) -> NoReturn:
        """Raise RuntimeError: the file is open for reading."""
        refuse("copy object", RuntimeError)

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        refuse(WRITTEN)

    def __delitem__(self, name: str) -> NoReturn:
        refuse("delete link", KeyError)

    def pop(self, name: str, *_: Any) -> NoReturn:
        """Raise KeyError: the file is open for reading."""
        refuse("delete link", KeyError)

    def __repr__(self) -> str:
        if not self:
            return "<Closed HDF5 group>"
        named = "(anonymous)" if self.name is None else f'"{self.name}"'
        return f"<HDF5 group {named} ({len(self)} members)>"


def _shown(link: Link, is_class: bool) -> Any:
    if link.kind == "soft":
        return SoftLink if is_class else SoftLink(link.path)
    if link.kind == "external":
        return ExternalLink if is_class else ExternalLink(link.file, link.path)
    if link.kind == "hard":
        return HardLink if is_class else HardLink()
    raise TypeError("Unknown link type")
