"""`StagedGroup`: a group of a version that you are making. Parts that you do not touch are not opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hyperslab.archive.tree.group import Group
from hyperslab.errors import UsageError, printable
from hyperslab.versions.layout.names import check_array_path, check_group_path
from hyperslab.versions.stage.attributes import StagedAttributes
from hyperslab.versions.stage.staged_array import StagedArray

if TYPE_CHECKING:
    from hyperslab.versions.inspect.diff import VersionDiff
    from hyperslab.versions.stage.committed import Child as CommittedChild
    from hyperslab.versions.stage.committed import CommittedGroup

Child: TypeAlias = "StagedGroup | StagedArray"
MakeArray: TypeAlias = "Callable[[str, dict[str, Any]], StagedArray]"


class StagedGroup(MutableMapping[str, "Child"]):
    """A group of a version that you are making: a mapping from names, or paths, to groups and arrays.

    `group["x"] = array` creates or replaces an array; `del group["x"]` removes it from the version.
    """

    def __init__(
        self, path: str, base: Group | CommittedGroup | None, source: Any, parent: StagedGroup | None = None
    ) -> None:
        self.name = path
        self.parent = parent
        self.attrs: StagedAttributes = StagedAttributes(path, None if base is None or parent is None else base.attrs)
        self.attrs.layouts = source.layouts
        self.base = base
        self._source = source
        self._touched: dict[str, Child | None] = {}  # None: deleted
        self._open = True

    def __getitem__(self, path: str) -> Child:
        group, name = self._at(path)
        if not name:
            return group
        return group._child(name)

    def _child(self, name: str) -> Child:
        if name not in self._touched:
            before = self.base[name] if self.base is not None and name in self.base else None
            if before is None:
                raise KeyError(f"there is no {self._path(name)!r} in this version")
            if isinstance(before, Mapping):
                self._touched[name] = StagedGroup(self._path(name), before, self._source, self)
            else:
                array: StagedArray = self._source.array_of(self._path(name), before)
                array.attrs.layouts = self.attrs.layouts
                self._touched[name] = array
        child = self._touched[name]
        if child is None:
            raise KeyError(f"{self._path(name)!r} was deleted from this version")
        if not self._open:  # also what is first looked at after the commit, or a write to it would be lost
            child.close()
        return child

    def __setitem__(self, path: str, value: Any) -> None:
        if isinstance(value, StagedGroup):
            raise TypeError(f"{path!r}: create groups with create_group, and assign arrays one by one")
        self.put_array(path, data=np.asarray(value), chunks=True)

    def __delitem__(self, path: str) -> None:
        self._check_open()
        group, name = self._at(path)
        if name not in group:
            raise KeyError(f"there is no {path!r} in this version")
        group._touched[name] = None

    def __iter__(self) -> Iterator[str]:
        names = [] if self.base is None else list(self.base)
        yield from (name for name in names if self._touched.get(name, self) is not None)
        yield from (name for name, child in self._touched.items() if child is not None and name not in names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        try:
            group, name = self._at(path)
        except KeyError:
            return False
        if not name:
            return True
        return group._touched[name] is not None if name in group._touched else name in (group.base or ())

    def create_group(self, path: str) -> StagedGroup:
        """Create a group, and the groups on the way to it.

        Raises
        ------
        ValueError
            The name is taken.
        """
        self._check_open()
        if isinstance(path, str) and path.startswith("/"):
            raise ValueError(f"{path!r}: a version has no root of its own; leave out the first '/'")
        check_group_path(self._full(path))
        group, name = self._at(path, make=True)
        if name in group:
            raise ValueError(f"there is a {path!r} already")
        made = StagedGroup(group._path(name), None, self._source, group)
        group._touched[name] = made
        return made

    def require_group(self, path: str) -> StagedGroup:
        """The group at this path, which is created if it does not exist."""
        group = self[path] if path in self else self.create_group(path)
        if not isinstance(group, StagedGroup):
            raise TypeError(f"{path!r} is an array")
        return group

    def create_dataset(
        self,
        path: str,
        shape: int | tuple[int, ...] | None = None,
        dtype: Any = None,
        data: Any = None,
        **options: Any,
    ) -> StagedArray:
        """Create an array. If an earlier version had an array at this path, it takes over its dtype, chunks and codecs.

        Parameters
        ----------
        path : str
            The path of the array; groups on the way are created.
        shape : int or tuple of int, optional
            The shape, if `data` does not give it.
        dtype : dtype, optional
            The dtype of the elements; by default that of `data`, or float32.
        data : array_like, optional
            The elements. Without them the array holds the fill value and takes no space.
        **options : Any
            `chunks` (by default 4096 elements if the array has one axis), `fillvalue`, `compression`,
            `compression_opts`, `shuffle`, `fletcher32` and `scaleoffset`, as in h5py.

        Raises
        ------
        ValueError
            The name is taken, or the options contradict the array of earlier versions.
        NotImplementedError
            The array has no axes, which the layout cannot store.
        """
        if path in self:
            raise ValueError(f"there is a {path!r} already")
        return self.put_array(path, shape, dtype, data, **options)

    def put_array(
        self,
        path: str,
        shape: int | tuple[int, ...] | None = None,
        dtype: Any = None,
        data: Any = None,
        **options: Any,
    ) -> StagedArray:
        """Create an array as `create_dataset` does, or replace the array at this path."""
        self._check_open()
        full = self._full(path)
        if path not in self:  # an earlier release may have made it
            check_array_path(full)
        group, name = self._at(path, make=True)
        if name in group and isinstance(group._child(name), StagedGroup):
            raise ValueError(f"{path!r} is a group: delete it first")
        made: StagedArray = self._source.new_array(full, {"shape": shape, "dtype": dtype, "data": data, **options})
        made.attrs.layouts = self.attrs.layouts
        group._touched[name] = made
        return made

    def add_stored(self, path: str, stored: Any) -> StagedArray:
        """Add an array that another version has, with its chunks as they are stored; its attributes are left out."""
        self._check_open()
        group, name = self._at(path, make=True)
        if name in group:
            raise ValueError(f"there is a {path!r} already")
        array: StagedArray = self._source.array_of(self._full(path), stored)
        group._touched[name] = array.as_new()
        return array

    def visititems(self, visit: Callable[[str, Child], Any]) -> Any:
        """Call `visit(path, found)` for everything below this group, until it returns something."""
        for name in list(self):
            child = self._child(name)
            returned = visit(name, child)
            if returned is None and isinstance(child, StagedGroup):
                returned = child.visititems(_below(name, visit))
            if returned is not None:
                return returned
        return None

    def touched(self) -> Iterator[tuple[str, Child | CommittedChild]]:
        """What the version will hold, by name; untouched children are those of the version before."""
        for name in self:
            child = self._touched.get(name)
            if child is not None:
                yield name, child
            elif self.base is not None:
                yield name, self.base[name]

    def diff(self) -> VersionDiff:
        """What this version, as it is now, changes in the version that it is based on. Only staged chunks are hashed.

        Raises
        ------
        UsageError
            This is a group of a version, not the version itself.
        """
        if self.parent is not None:
            raise UsageError(f"{self.name!r} is a group: call diff() of its version")
        difference: VersionDiff = self._source.difference_of(self)
        return difference

    @property
    def is_open(self) -> bool:
        """Whether you can still change it."""
        return self._open

    def close(self) -> None:
        """Refuse further changes here and below."""
        self._open = False
        for child in self._touched.values():
            if child is not None:
                child.close()

    def __repr__(self) -> str:
        return f"<hyperslab.StagedGroup {self.name!r}: {printable(', '.join(self))}>"

    def _at(self, path: str, *, make: bool = False) -> tuple[StagedGroup, str]:
        """The group that holds the last name of a path, and that name."""
        names = _names(path)
        group = self
        for name in names[:-1]:
            if make and name not in group:
                group.create_group(name)
            child = group._child(name)
            if not isinstance(child, StagedGroup):
                raise KeyError(f"{path!r}: {child.name!r} is an array, not a group")
            group = child
        return group, names[-1] if names else ""

    def _full(self, path: str) -> str:
        """A path below this group as a path in the version."""
        return self._path("/".join(_names(path)))

    def _path(self, name: str) -> str:
        return f"{self.name}/{name}" if self.name else name

    def _check_open(self) -> None:
        if not self._open:
            raise ValueError("the version was committed or abandoned; stage a new version")


def _names(path: str) -> list[str]:
    if not isinstance(path, str):
        raise TypeError(f"{path!r} is not the name of a group or array")
    return [name for name in path.split("/") if name not in ("", ".")]


def _below(name: str, visit: Callable[[str, Child], Any]) -> Callable[[str, Child], Any]:
    return lambda path, child: visit(f"{name}/{path}", child)
