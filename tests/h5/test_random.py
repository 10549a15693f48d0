"""Random files by h5py, random selections and attributes: what is read, its dtype, and classes of errors are h5py's."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5_comparing
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import hyperslab.h5 as ours
from draws import few

theirs = pytest.importorskip("h5py")

PLAIN = ["i1", "u1", "<i2", ">i2", "<u4", ">i8", "<u8", "<f2", ">f4", "<f8", "?", "<c8", ">c16", "S3", "V4"]
DTYPES: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: np.dtype(name) for name in PLAIN},
    "text": theirs.string_dtype,
    "ascii": lambda: theirs.string_dtype("ascii"),
    "utf8": lambda: theirs.string_dtype("utf-8", 5),
    "enum": lambda: theirs.enum_dtype({"A": 0, "B": 1, "C": 7}, "i2"),
    "sequence": lambda: theirs.vlen_dtype(np.dtype("i4")),
    "texts": lambda: theirs.vlen_dtype(theirs.string_dtype()),
    "date": lambda: theirs.opaque_dtype("M8[s]"),
    "record": lambda: np.dtype([("a", ">i4"), ("b", "f8"), ("s", "S3"), ("v", "i2", (2,))]),
    "mixed": lambda: np.dtype([("k", "i4"), ("t", theirs.string_dtype()), ("e", "?")]),
    "array": lambda: np.dtype(("<i2", (2, 3))),
}


def filling(dtype: Any, shape: tuple[int, ...], seed: int) -> Any:
    """Elements of a dtype."""
    draws = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if theirs.check_string_dtype(dtype) is not None:
        texts = [b"", b"a", "é".encode() if theirs.check_string_dtype(dtype).encoding == "utf-8" else b"e", b"abc"]
        found = np.empty(count, dtype)
        found[:] = [texts[place] for place in draws.integers(0, len(texts), count)]
        return found.reshape(shape)
    vlen = theirs.check_vlen_dtype(dtype)
    if vlen is not None:
        found = np.empty(count, dtype)
        for place in range(count):
            found[place] = filling(vlen, (int(draws.integers(0, 4)),), seed + place)
        return found.reshape(shape)
    if dtype.names is not None:
        found = np.zeros(shape, dtype)
        for number, name in enumerate(dtype.names):
            inner = dtype.fields[name][0]
            found[name] = filling(inner.base, (*shape, *inner.shape), seed + number)
        return found
    found = np.zeros(shape, dtype)
    flat = found.reshape(-1)
    kind = found.dtype.kind
    if kind == "V":
        return np.frombuffer(draws.bytes(flat.nbytes), found.dtype).reshape(found.shape).astype(dtype)
    if theirs.check_enum_dtype(dtype) is not None:
        flat[:] = draws.choice(list(theirs.check_enum_dtype(dtype).values()), flat.size)
    else:
        low = 0 if kind in "u?bM" else -100
        flat[:] = draws.integers(low, 2 if kind == "b" else 100, flat.size)
    return found


@st.composite
def layouts(draw: Any) -> dict[str, Any]:
    """How a dataset is made."""
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=3)))
    options: dict[str, Any] = {"shape": shape, "name": draw(st.sampled_from(sorted(DTYPES)))}
    if shape and 0 not in shape and draw(st.booleans()):
        options["chunks"] = tuple(draw(st.integers(1, length)) for length in shape)
        options["compression"] = draw(st.sampled_from([None, "gzip", "lzf"]))
        options["shuffle"] = draw(st.booleans())
        options["fletcher32"] = draw(st.booleans())
        options["maxshape"] = tuple(draw(st.sampled_from([length, None, length + 5])) for length in shape)
    options["written"] = draw(st.booleans())
    return options


def one_index(length: int) -> Any:
    slices = st.builds(slice, *[st.none() | st.integers(-8, 8)] * 2, st.sampled_from([None, 1, 2, 3]))
    some = st.lists(st.integers(0, max(0, length - 1)), unique=True, max_size=4 if length else 0)
    lists = some.map(sorted)
    blocks = st.builds(ours.MultiBlockSlice, st.integers(0, 2), st.just(2), st.integers(1, 2), st.integers(1, 2))
    masks = st.lists(st.booleans(), min_size=length, max_size=length).map(np.array)
    odd = st.sampled_from([None, "a", 1.5, slice(None, None, -1), [2, 1], [[0]]])
    return st.one_of(st.integers(-8, 8), slices, slices, slices, lists, blocks, masks, st.just(...), odd)


@st.composite
def selections(draw: Any, shape: tuple[int, ...]) -> Any:
    """What stands between brackets."""
    if shape and draw(st.integers(0, 9)) == 0:
        count = int(np.prod(shape))
        return (np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool).reshape(shape),)
    count = draw(st.integers(0, len(shape) + draw(st.sampled_from([0, 0, 0, 1]))))
    lengths = [*shape, 3]
    return tuple(draw(one_index(lengths[place])) for place in range(count))


def as_theirs(selection: Any) -> Any:
    change = lambda one: (  # noqa: E731
        theirs.MultiBlockSlice(one.start, one.stride, one.count, one.block)
        if isinstance(one, ours.MultiBlockSlice)
        else one
    )
    return tuple(map(change, selection))


def made(path: Path, options: dict[str, Any], seed: int) -> None:
    options = dict(options)
    dtype, shape, is_written = DTYPES[options.pop("name")](), options.pop("shape"), options.pop("written")
    with theirs.File(path, "w") as file:
        if theirs.check_vlen_dtype(dtype) is not None:  # to which HDF5 applies no filters
            options = {key: value for key, value in options.items() if key in ("chunks", "maxshape")}
        x = file.create_dataset("x", shape, dtype, **options)
        if is_written and 0 not in shape:
            write(x, filling(dtype, shape, seed))
        small = filling(dtype, (2,), seed)
        try:
            x.attrs.create("a", small, dtype=dtype)
            x.attrs.create("one", small[0], dtype=dtype)
        except (TypeError, ValueError, OSError, AttributeError):  # h5py does not write every dtype there
            pass


def write(x: Any, elements: Any) -> None:
    """One by one what h5py would take for axes."""
    if x.shape and theirs.check_string_dtype(x.dtype) is None and theirs.check_vlen_dtype(x.dtype) is not None:
        for place, one in np.ndenumerate(elements):
            x[place] = one
    elif x.shape or theirs.check_vlen_dtype(x.dtype) is None or theirs.check_string_dtype(x.dtype) is not None:
        x[...] = elements


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return error


def is_their_fault(error: Any) -> bool:
    """An index as large as the axis is long, which h5py lets through to HDF5; and blocks beside a list."""
    said = str(error) if isinstance(error, OSError) else ""
    return "not within extent" in said or "different number" in said


@settings(max_examples=few(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(layouts(), st.data(), st.integers(0, 1000))
def test_a_selection_is_read_as_h5py_reads_it(options: dict[str, Any], data: Any, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.h5"
        made(path, options, seed)
        with theirs.File(path) as their, ours.File(path) as our:
            for name in (
                "shape",
                "dtype",
                "maxshape",
                "chunks",
                "compression",
                "fillvalue",
                "nbytes",
                "size",
                "filter_ids",
            ):
                found = h5_comparing.differences(getattr(their["x"], name), getattr(our["x"], name), name)
                assert found is None, found
            for name in their["x"].attrs:
                found = h5_comparing.differences(their["x"].attrs[name], our["x"].attrs[name], name)
                assert found is None, found
            for _ in range(5):
                selection = data.draw(selections(options["shape"]))
                one = outcome(lambda s=selection: their["x"][as_theirs(s)])
                other = outcome(lambda s=selection: our["x"][s])
                if is_their_fault(one):
                    continue
                if names_field(selection) and isinstance(one, Exception) and isinstance(other, Exception):
                    continue  # which of two faults is found first depends on the rest of the selection
                found = h5_comparing.differences(one, other, repr(selection))
                assert found is None, found


def names_field(selection: Any) -> bool:
    return any(isinstance(one, str) for one in (selection if isinstance(selection, tuple) else (selection,)))


NUMBERS = ["i1", "u1", "<i2", ">u2", "<i4", ">i8", "<u8", "<f4", ">f8", "?"]


@settings(max_examples=few(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.lists(st.floats(allow_nan=False, width=32), max_size=6))
@example("<f4", "?", [])  # HDF5 has no such conversion, and does not look for one
def test_numbers_are_converted_as_hdf5_converts_them(stored: str, wanted: str, numbers: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        path = Path(folder) / "x.h5"
        dtype = np.dtype(stored)
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        if limits is not None:
            numbers = [max(float(limits.min), min(float(limits.max) / 2, number)) for number in numbers]
        # If one of both types is big-endian, HDF5 turns these into the smallest integer, and otherwise into 0.
        if dtype.kind == "f" and ">" in stored + wanted:
            numbers = [0.0 if -0.5 < number < 0 else number for number in numbers]
        with theirs.File(path, "w") as file:
            file["x"] = np.array(numbers, "f8").astype(dtype)
        with theirs.File(path) as their, ours.File(path) as our:
            one, other = (outcome(lambda f=f: f["x"].astype(wanted)[:]) for f in (their, our))
            found = h5_comparing.differences(one, other, f"{stored} as {wanted}")
            assert found is None, found
