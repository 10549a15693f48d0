"""Groups of versions that you are making, and of committed ones in files open for writing, as in versioned-hdf5."""

from __future__ import annotations

import posixpath
import textwrap
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import h5py
import numpy as np

from hyperslab.errors import printable
from hyperslab.versions.commit.chunk_store import is_text
from hyperslab.versions.compat.arrays import DatasetLike, DatasetWrapper, InMemorySparseDataset
from hyperslab.versions.compat.codecs import GIVEN_NOTHING, check_codecs, given, settings_of
from hyperslab.versions.compat.opened import Opened
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, check_array_path, without
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

SCALAR = "Scalar datasets are not implemented: the layout cannot store an array without axes; use the shape (1,)"


class InMemoryGroup(h5py.Group):  # type: ignore[misc]
    """A group of a version: staged, or committed and read-only.

    Parameters
    ----------
    opened : Opened
        The file.
    version : str
        The name of the version.
    path : str
        The path of the group in the version.
    staged : StagedGroup | None
        The staged group; None in a committed version.
    up : InMemoryGroup | None
        The group that holds it; None for the version itself.
    """

    opened: Opened
    path: str
    staged: StagedGroup | None
    version: str

    def __init__(
        self,
        opened: Opened,
        version: str,
        path: str = "",
        staged: StagedGroup | None = None,
        up: InMemoryGroup | None = None,
    ) -> None:
        self.opened, self.version, self.path = opened, version, path
        self.staged, self._up = staged, up
        self._children: dict[str, InMemoryGroup | DatasetLike] = {}
        self._bound: Any = None

    @property
    def _committed(self) -> bool:
        return self.staged is None or not self.staged.is_open

    @property
    def _id(self) -> Any:
        """The identifier of the group in h5py."""
        if not self._committed:
            raise ValueError(f"{self.name} is only in memory until it is committed: h5py cannot do this with it yet")
        if not self._bound:
            self._bound = self.opened.f[self.name].id
        return self._bound

    @property
    def name(self) -> str:
        """The path of the group in the file."""
        return posixpath.join(self.opened.path, self.version, self.path).rstrip("/")

    @property
    def file(self) -> Any:
        """The h5py file that holds it."""
        return self.opened.f.file

    @property
    def parent(self) -> Any:
        """The group that holds it."""
        return self.opened.f[self.opened.path] if self._up is None else self._up

    @property
    def versioned_root(self) -> InMemoryGroup:
        """The group of the whole version."""
        return self if self._up is None else self._up.versioned_root

    @property
    def attrs(self) -> Any:
        """The attributes."""
        if self.staged is not None and not self._committed:
            return self.staged.attrs
        return super().attrs

    def check_open(self) -> None:
        """Refuse changes to a committed version.

        Raises
        ------
        ValueError
            The version was committed.
        """
        if self._committed:
            raise ValueError(f'InMemoryGroup "{self.name}" has already been committed: stage a new version')

    _check_committed = check_open

    def __getitem__(self, name: Any) -> Any:
        here: Any = self
        for part in self._relative(name).split("/"):
            if part in ("", "."):
                continue
            if not isinstance(here, InMemoryGroup):
                raise KeyError(f"{name!r}: {here.name!r} is an array, not a group")
            here = here._child(part)
        return here

    def _relative(self, name: Any) -> str:
        """A path relative to this group, given one that may start at the root of the file."""
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not the name of a group or array")
        root = self.versioned_root.name
        if not name.startswith("/"):
            return name
        if not f"{name}/".startswith(f"{root}/") or self._up is not None:
            raise KeyError(f"{name!r} is not in {self.name}")
        return name[len(root) + 1 :]

    def _child(self, name: str) -> InMemoryGroup | DatasetLike:
        path = f"{self.path}/{name}" if self.path else name
        staged = None if self.staged is None else self.staged[name]
        if staged is not None:
            known = self._children.get(name)
            if known is None or known.staged is not staged:
                if isinstance(staged, StagedGroup):
                    known = InMemoryGroup(self.opened, self.version, path, staged, self)
                else:
                    known = DatasetWrapper(self, self.opened, self.version, path, staged)
                self._children[name] = known
            return known
        kind = super().get(name, getclass=True)
        if kind is None:
            raise KeyError(f"there is no {name!r} in {self.name}")
        if kind is h5py.Group:
            return InMemoryGroup(self.opened, self.version, path, None, self)
        return DatasetWrapper(self, self.opened, self.version, path)

    def get(self, name: str, default: Any = None, getclass: bool = False, getlink: bool = False) -> Any:
        """The object at a path, or `default`."""
        if getclass or getlink:
            return super().get(name, default, getclass, getlink)
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        return iter(self.staged) if self.staged is not None else super().__iter__()

    def __len__(self) -> int:
        return len(self.staged) if self.staged is not None else super().__len__()

    def __contains__(self, name: object) -> bool:
        try:
            path = self._relative(name).strip("/")
        except (KeyError, TypeError):
            return False
        if self.staged is not None:
            return path in self.staged
        return not path or super().__contains__(path)

    def __bool__(self) -> bool:
        return not self._committed or bool(self.opened.f)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, InMemoryGroup):
            return self.opened is other.opened and self.name == other.name
        return self._committed and bool(super().__eq__(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __setitem__(self, name: str, obj: Any) -> None:
        self.check_open()
        if isinstance(obj, h5py.Group):
            raise TypeError(f"{name!r}: create groups with create_group, and assign arrays one by one")
        group, link = self._made_way(name)
        if isinstance(obj, DatasetLike | h5py.Dataset):
            group._copy(link, obj)
            return
        data = np.asarray(obj)
        if data.ndim == 0:
            raise NotImplementedError(f"{name!r}: {SCALAR}")
        staged = group.staged
        assert staged is not None
        if link not in staged:
            staged.create_dataset(link, data=data, chunks=True)
            return
        old = staged[link]
        if not isinstance(old, StagedArray):
            raise ValueError(f"{name!r} is a group: delete it first")
        if data.dtype != old.dtype and not (is_text(old.dtype) and data.dtype.kind in "OTUS"):
            raise ValueError(f"{name!r} has the dtype {old.dtype}, not {data.dtype}: convert what you assign")
        if data.shape != old.shape:
            old.resize(data.shape)
        old[...] = data

    def _copy(self, link: str, source: Any) -> None:
        """Create a copy of an array, with its chunks, codecs and attributes."""
        if source.ndim == 0:
            raise NotImplementedError(f"{link!r}: {SCALAR}")
        raw = self.opened.f.get(source.attrs["raw_data"]) if "raw_data" in source.attrs else source
        options = {"chunks": source.chunks, "fillvalue": raw.fillvalue, **settings_of(raw)}
        made = self.create_dataset(link, data=source[()], dtype=source.dtype, **options)
        made.attrs.update(without(source.attrs, ARRAY_BOOKKEEPING))

    def __delitem__(self, name: str) -> None:
        self.check_open()
        assert self.staged is not None
        del self.staged[self._relative(name)]

    def create_group(self, name: str, track_order: bool | None = None) -> InMemoryGroup:  # noqa: ARG002 -- by name
        """Create a group, and the groups on the way to it.

        Raises
        ------
        ValueError
            The name is taken, the version was committed, or the path begins with "/".
        """
        self.check_open()
        assert self.staged is not None
        self.staged.create_group(name)
        made: InMemoryGroup = self[name]
        return made

    def require_group(self, name: str) -> InMemoryGroup:
        """The group at this path, which is created if it does not exist."""
        group: InMemoryGroup = self[name] if name in self else self.create_group(name)
        if not isinstance(group, InMemoryGroup):
            raise TypeError(f"{name!r} is an array")
        return group

    def _made_way(self, path: str) -> tuple[InMemoryGroup, str]:
        """The group that holds the last name of a path, which is created if needed, and that name."""
        way, link = posixpath.split(self._relative(path).rstrip("/"))
        return (self.require_group(way) if way else self), link

    def create_dataset(
        self,
        name: str,
        shape: int | tuple[int, ...] | None = None,
        dtype: Any = None,
        data: Any = None,
        fillvalue: Any = None,
        chunks: Any = None,
        compression: Any = GIVEN_NOTHING,
        compression_opts: Any = GIVEN_NOTHING,
        scaleoffset: Any = GIVEN_NOTHING,
        shuffle: Any = GIVEN_NOTHING,
        fletcher32: Any = GIVEN_NOTHING,
        **ignored: Any,
    ) -> DatasetLike:
        """Create an array, or replace the array of this name. Without `data` it takes no space.

        If an earlier version had an array at this path, it takes over its dtype, chunks and codecs.

        Raises
        ------
        ValueError
            The options contradict each other or the earlier array, or the version was committed.
        TypeError
            Neither shape nor data is given, or elements of this kind cannot have versions.
        NotImplementedError
            The array has no axes.
        """
        self.check_open()
        if name.startswith("/"):
            raise ValueError(f"{name!r}: a version has no root of its own; leave out the first '/'")
        _warn_of(ignored)
        if isinstance(data, h5py.Empty):
            raise NotImplementedError(f"{name!r}: HDF5's empty arrays, without any element, cannot have versions")
        if chunks is False:
            raise ValueError(f"{name!r}: chunks=False is not supported: versions are made of chunks")
        if (data is not None and np.ndim(data) == 0) or shape == ():
            raise NotImplementedError(f"{name!r}: {SCALAR}")
        asked = given(compression, compression_opts, scaleoffset, shuffle, fletcher32)
        group, link = self._made_way(name)
        path = f"{group.path}/{link}" if group.path else link
        check_array_path(path)
        check_codecs(asked, self.opened.raw(path), path)
        dtype = np.dtype("f8") if dtype is None and data is None else dtype
        chunks = None if chunks is True else chunks
        staged = group.staged
        assert staged is not None
        options = {"chunks": chunks, "fillvalue": fillvalue, **asked}
        made = staged.put_array(link, shape, dtype, data, **options)
        kind = DatasetWrapper if data is not None else InMemorySparseDataset
        array = group._children[link] = kind(group, group.opened, group.version, path, made)
        return array

    def require_dataset(self, name: str, shape: Any, dtype: Any, exact: bool = False, **options: Any) -> DatasetLike:
        """The array at this path, if it has this shape and can hold this dtype; it is created if it does not exist.

        Raises
        ------
        TypeError
            The object at this path is something else.
        """
        if name not in self:
            return self.create_dataset(name, shape, dtype, **options)
        there = self[name]
        wanted = (shape,) if isinstance(shape, int) else tuple(shape)
        fits = isinstance(there, DatasetLike) and there.shape == wanted
        if not fits or not (there.dtype == dtype if exact else np.can_cast(dtype, there.dtype)):
            raise TypeError(f"{name!r} is {there!r}, not of the shape {wanted} and dtype {np.dtype(dtype)}")
        return there  # type: ignore[no-any-return]

    def move(self, source: str, dest: str) -> None:
        """Not supported: assign the array to another name, and delete the old one."""
        raise NotImplementedError(f"assign group[{dest!r}] = group[{source!r}], and delete {source!r}")

    def visititems(self, func: Callable[[str, Any], Any]) -> None:
        """Call `func(path, found)` for everything below this group, whatever it returns."""
        for name in list(self):
            child = self[name]
            func(name, child)
            if isinstance(child, InMemoryGroup):
                child.visititems(_below(name, func))

    def visit(self, func: Callable[[str], Any]) -> None:
        """Call `func(path)` for everything below this group."""
        self.visititems(lambda path, _: func(path))

    def datasets(self) -> dict[str, DatasetLike]:
        """All arrays below this group, by their paths relative to it."""
        arrays: dict[str, DatasetLike] = {}
        self.visititems(lambda path, one: arrays.update({path: one} if isinstance(one, DatasetLike) else {}))
        return arrays

    def close(self) -> None:
        """Refuse further changes here and below."""
        if self.staged is not None:
            self.staged.close()

    def __repr__(self) -> str:
        if not self:
            return "<Closed InMemoryGroup>"
        if self._committed:
            return f'<Committed InMemoryGroup "{printable(self.name)}">'
        shown = [f'<InMemoryGroup "{printable(self.name)}" ({len(self)} members)>']
        return "\n".join(shown + [textwrap.indent(repr(self[name]), "  ") for name in self])


def _warn_of(ignored: dict[str, Any]) -> None:
    for name, value in ignored.items():
        if value is None or (name == "maxshape" and isinstance(value, tuple) and set(value) == {None}):
            continue
        message = f"The {name} parameter is currently ignored for versioned datasets."
        warnings.warn(message, stacklevel=3)


def _below(name: str, func: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda path, child: func(f"{name}/{path}", child)
