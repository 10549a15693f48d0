"""A pytest plugin for h5py's own test suite, which repeats each read of a test with `hyperslab.h5`.

The suite writes with the real h5py. After each read of a dataset, group or attribute, the plugin flushes the file,
opens it with `hyperslab.h5` and reads the same; a difference fails the test. The test gets the values that
`hyperslab.h5` read, so its own assertions judge them too. With HYPERSLAB_H5PY=alias, `h5py.File(name, "r")` opens the
file with `hyperslab.h5` instead.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import h5py._hl.dims
import numpy as np
import pytest
from h5py import h5f, h5i, h5o, h5r

import hyperslab.h5 as ours
from hyperslab.h5.group import opened
from hyperslab.h5.store import Place

sys.path.insert(0, str(Path(__file__).parents[2] / "h5"))
import h5_comparing

IS_ALIAS = os.environ.get("HYPERSLAB_H5PY") == "alias"
LEFT_OUT = Path(__file__).with_name("left_out.txt")
REAL_FILE = h5py.File
inside = threading.local()
counts: collections.Counter[str] = collections.Counter()


class Skipped(Exception):
    """The test reads something that is not in a file, so nothing is compared."""


def converted(argument: Any, of: Any) -> Any:
    """Convert h5py's objects in an argument to ours."""
    if isinstance(argument, tuple):
        return tuple(converted(one, of) for one in argument)
    if isinstance(argument, h5py.MultiBlockSlice):
        return ours.MultiBlockSlice(argument.start, argument.stride, argument.count, argument.block)
    if isinstance(argument, h5py.RegionReference):
        raise Skipped("a region reference in memory")
    if isinstance(argument, h5py.Reference):
        if not argument:
            return ours.Reference()
        return ours.Reference(h5o.get_info(h5r.dereference(argument, of.id)).addr)
    if type(argument).__module__.startswith("h5py"):
        raise Skipped(f"a {type(argument).__name__} in memory")
    return argument


def on_disk(of: Any, folder: Path) -> Path:
    """Flush the file of an object, and return the path of a file with its current content."""
    file = h5i.get_file_id(of.id)
    h5f.flush(file)
    if file.get_access_plist().get_driver() == h5py.h5fd.SEC2:
        return Path(os.fsdecode(file.name))
    path = folder / "image.h5"
    path.write_bytes(file.get_file_image())
    return path


def counterpart(of: Any, file: ours.File) -> Any:
    """Find our object that corresponds to an object of h5py."""
    name = h5i.get_name(of.id)
    if name is None:
        raise Skipped("an object without a name")
    if isinstance(of, REAL_FILE):
        return file
    return opened(Place(file._store, h5o.get_info(of.id).addr, name.decode("utf-8", "surrogateescape")))


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return error


def settled(found: Any) -> Any:
    """Convert a result to a value that can be compared after the file is closed."""
    if isinstance(found, list | tuple) and not hasattr(found, "_fields"):
        return type(found)(map(settled, found))
    if type(found).__name__ in ("File", "Group", "Dataset", "Datatype"):
        return (type(found).__name__, found.name)
    return found


def mirrored(of: Any, what: str, theirs: Any, ask: Callable[[Any], Any], owner: Any = None) -> Any:
    """Read the same with `hyperslab.h5`, compare, and return our value."""
    owner = of if owner is None else owner
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = outcome(lambda: on_disk(owner, Path(folder)))
            if isinstance(path, Exception):
                raise Skipped("a file that cannot be flushed")
            with ours.File(path) as file:
                found = outcome(lambda: ask(counterpart(owner, file)))
                if isinstance(found, Skipped):
                    raise found
                found = settled(found)
        except Skipped as reason:
            counts[f"skipped: {reason}"] += 1
            return theirs
    different = h5_comparing.differences(settled(theirs), found, what)
    counts["read"] += 1
    if different is not None:
        raise AssertionError(f"hyperslab.h5 differs: {different}")
    if (
        isinstance(found, np.ndarray | np.void) and found.dtype.hasobject
    ):  # our references are not those of h5py's functions
        return theirs
    return found if isinstance(found, np.ndarray | np.generic | str | bytes | int | float) else theirs


def reading(real: Callable[..., Any], what: str, ask: Callable[..., Any], owner: Callable[[Any], Any]) -> Any:
    """Wrap a function of h5py so that it also reads with `hyperslab.h5` and compares."""

    @functools.wraps(real)
    def both(self: Any, *args: Any, **keywords: Any) -> Any:
        if getattr(inside, "is_so", False) or not self_is_open(owner(self)):
            return real(self, *args, **keywords)
        inside.is_so = True
        try:
            theirs = outcome(lambda: real(self, *args, **keywords))

            def asked(their: Any) -> Any:
                given = tuple(converted(one, owner(self)) for one in args)
                return ask(their, *given, **keywords)

            found = mirrored(self, f"{what}{args!r:.200}", theirs, asked, owner(self))
        finally:
            inside.is_so = False
        if isinstance(theirs, Exception):
            raise theirs
        return found

    return both


def self_is_open(of: Any) -> bool:
    try:
        return bool(of) and bool(of.id.valid)
    except Exception:
        return False


def itself(of: Any) -> Any:
    return of


class OfAttributes:
    """The object that has the attributes of an attribute manager."""

    def __init__(self, manager: Any) -> None:
        self.id = manager._id

    def __bool__(self) -> bool:
        return bool(self.id)


PROPERTIES = (
    "shape", "dtype", "ndim", "size", "nbytes", "chunks", "maxshape", "fillvalue", "compression", "compression_opts",
    "shuffle", "fletcher32", "scaleoffset", "external", "is_virtual", "is_scale", "filter_ids", "filter_names", "name",
)  # fmt: skip


def wrap(owner: type, name: str, ask: Callable[..., Any], of: Callable[[Any], Any] = itself) -> None:
    found = next(kind.__dict__[name] for kind in owner.__mro__ if name in kind.__dict__)
    what = f"{owner.__name__}.{name}"
    if isinstance(found, property):
        setattr(owner, name, property(reading(found.fget, what, ask, of), found.fset))
    else:
        setattr(owner, name, reading(getattr(owner, name), what, ask, of))


def listing(real: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Any]:
    return lambda self: list(real(self))


def wrap_all() -> None:
    for name in PROPERTIES:
        wrap(h5py.Dataset, name, lambda their, name=name: getattr(their, name))
    wrap(h5py.Dataset, "__getitem__", lambda their, *args, **kw: their.__getitem__(*args, **kw))
    wrap(h5py.Dataset, "__array__", lambda their, *args, **kw: their.__array__(*args, **kw))
    wrap(h5py.Dataset, "__len__", len)
    wrap(h5py.Dataset, "__repr__", repr)
    for group in (h5py.Group,):
        wrap(group, "__getitem__", lambda their, name: their[name])
        wrap(group, "get", lambda their, *args, **kw: their.get(*args, **kw))
        wrap(group, "__contains__", lambda their, name: name in their)
        wrap(group, "__len__", len)
        real = group.__iter__
        group.__iter__ = lambda self, real=real: iter(both_list(self, real))
    attributes = h5py.AttributeManager
    wrap(attributes, "__getitem__", lambda their, name: their.attrs[name], OfAttributes)
    wrap(attributes, "__contains__", lambda their, name: name in their.attrs, OfAttributes)
    wrap(attributes, "__len__", lambda their: len(their.attrs), OfAttributes)
    real_names = attributes.__iter__
    attributes.__iter__ = lambda self: iter(
        reading(lambda it: list(real_names(it)), "attrs", lambda their: list(their.attrs), OfAttributes)(self)
    )
    for name in ("visit", "visit_links"):
        wrap_visit(h5py.Group, name)
    real_direct = h5py.Dataset.read_direct
    h5py.Dataset.read_direct = lambda self, dest, *args, **kw: read_direct(real_direct, self, dest, args, kw)
    views = h5py._hl.dataset
    view_of = {"AsStrView": lambda view, their: their.asstr(view.encoding, view.errors)}
    view_of["FieldsView"] = lambda view, their: their.fields(view.extract_field or view.read_dtype.names)
    for name, make in view_of.items():
        wrap_view(getattr(views, name), make)
    dimension = h5py._hl.dims.DimensionProxy
    for name in ("label", "__len__", "keys", "__getitem__", "items", "values"):
        wrap_dimension(dimension, name)


def wrap_visit(owner: type, name: str) -> None:
    """Wrap a method that visits names, and compare the names."""
    real = getattr(owner, name)

    def both(self: Any, func: Callable[[str], Any]) -> Any:
        if getattr(inside, "is_so", False) or not self_is_open(self):
            return real(self, func)
        names = reading(
            lambda it: visited(real, it), name, lambda their: visited(getattr(type(their), name), their), itself
        )
        names(self)
        return real(self, func)

    setattr(owner, name, both)


def visited(visit: Any, of: Any) -> list[str]:
    found: list[str] = []
    visit(of, found.append)
    return found


def wrap_view(view: type, make: Callable[[Any, Any], Any]) -> None:
    real = view.__getitem__

    def both(self: Any, args: Any) -> Any:
        one = reading(
            lambda it, given: real(self, given), view.__name__, lambda their, given: make(self, their)[given], itself
        )
        return one(self._dset, args)

    view.__getitem__ = both


def wrap_dimension(dimension: type, name: str) -> None:
    found = dimension.__dict__[name]
    is_property = isinstance(found, property)
    real = found.fget if is_property else found

    def ours_of(axis: Any) -> Callable[..., Any]:
        def ask(their: Any, *args: Any) -> Any:
            one = their.dims[axis._dimension]
            return getattr(one, name) if is_property else getattr(one, name)(*args)

        return ask

    def both(self: Any, *args: Any) -> Any:
        dataset = h5py.Dataset(self._id)
        return reading(lambda it, *given: real(self, *given), f"dims.{name}", ours_of(self), itself)(dataset, *args)

    setattr(dimension, name, property(both, found.fset) if is_property else both)


def read_direct(real: Any, self: Any, dest: Any, args: Any, keywords: Any) -> Any:
    if getattr(inside, "is_so", False) or not self_is_open(self):
        return real(self, dest, *args, **keywords)
    before = np.array(dest, copy=True)

    def theirs(it: Any) -> Any:
        real(it, dest, *args, **keywords)
        return np.array(dest, copy=True)

    def asked(their: Any) -> Any:
        their.read_direct(before, *args, **keywords)
        return before

    if not (isinstance(dest, np.ndarray) and dest.flags.c_contiguous):
        return real(self, dest, *args, **keywords)
    reading(theirs, "read_direct", asked, itself)(self)
    return None


def both_list(self: Any, real: Any) -> Any:
    return reading(lambda it: list(real(it)), "Group.__iter__", list, itself)(self)


class AliasMeta(type(REAL_FILE)):  # type: ignore[misc]
    """The metaclass of h5py's classes that also have our objects as instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.real | getattr(ours, cls.__name__))


class FileMeta(AliasMeta):
    """The metaclass of `h5py.File`, which opens a file with `hyperslab.h5` if the mode is "r"."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        mode = keywords.get("mode", args[1] if len(args) > 1 else "r")
        name = keywords.get("name", args[0] if args else None)
        if mode == "r" and not isinstance(name, h5py._objects.ObjectID):
            counts["opened by us"] += 1
            return ours.File(*args, **keywords)
        return REAL_FILE(*args, **keywords)


def replace_classes() -> None:
    for name in ("Group", "Dataset", "Datatype", "HLObject", "File"):
        real = getattr(h5py, name)
        meta = FileMeta if name == "File" else AliasMeta
        setattr(h5py, name, meta(name, (real,), {"real": real}))


def left_out() -> dict[str, str]:
    found = {}
    for line in LEFT_OUT.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            test, _, reason = line.partition(" | ")
            found[test.strip()] = reason.strip()
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = left_out()
    which = "alias:" if IS_ALIAS else "mirror:"
    for item in items:
        name = item.nodeid.split("tests/", 1)[-1]
        for key, reason in reasons.items():
            kind, _, rest = key.partition(" ")
            if kind in (which, "both:") and (name == rest or name.startswith((rest + "[", rest + "::"))):
                item.add_marker(pytest.mark.skip(reason=f"left out: {reason}"))


def pytest_configure(config: pytest.Config) -> None:
    if IS_ALIAS:
        replace_classes()
    else:
        wrap_all()


def pytest_unconfigure(config: pytest.Config) -> None:
    report = os.environ.get("HYPERSLAB_H5PY_COUNTS")
    if report:
        Path(report).write_text(json.dumps(counts))
