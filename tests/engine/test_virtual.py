"""Virtual arrays of HDF5, read by resolving them: h5py is the judge, or NumPy where h5py is known to be wrong."""

from __future__ import annotations

import pickle
import resource
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import DamagedFile, FileChanged

FEW = settings(max_examples=few(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
UNLIMITED = h5py.h5s.UNLIMITED


def source(path: Path, shape: tuple[int, ...], dtype: str = "<i4", **options: Any) -> np.ndarray[Any, Any]:
    """A file with an array "x" whose elements are all different, and positive."""
    seed = sum(path.name.encode()) % 89
    written = (np.arange(int(np.prod(shape))).reshape(shape) + 1 + 100 * seed).astype(dtype)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=written, **options)
    return written


def mapped(path: Path, shape: tuple[Any, ...], mappings: list[tuple[Any, Any, Any, Any]], **options: Any) -> None:
    """A virtual array "v" of mappings (target space, file, array, source space), as HDF5's own interface makes it."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_fill_value(np.array(-1, options.get("dtype", "<i4")))
    for target, file, array, space in mappings:
        plist.set_virtual(target, str(file).encode(), array.encode(), space)
    most = tuple(UNLIMITED if length is None else length for length in options.get("most", shape))
    space = h5py.h5s.create_simple(shape, most)
    kind = h5py.h5t.py_create(np.dtype(options.get("dtype", "<i4")))
    with h5py.File(path, options.get("mode", "w"), libver="latest") as file:
        h5py.h5d.create(file.id, options.get("name", "v").encode(), kind, space, plist)


def regular(shape: tuple[Any, ...], *axes: tuple[int, int, int, int]) -> h5py.h5s.SpaceID:
    """A space with a selection: (start, stride, count, block) for each axis."""
    lengths = tuple(10 if length is None else length for length in shape)
    space = h5py.h5s.create_simple(lengths, tuple(UNLIMITED if length is None else length for length in shape))
    start, stride, count, block = zip(*axes, strict=True)
    space.select_hyperslab(start, count, stride, block)
    return space


def check(path: Path, name: str = "v") -> hs.Array:
    """Ours is what h5py reads, whole and in parts, twice."""
    with h5py.File(path, "r") as file:
        expected = file[name][...]
    array = hs.open(path)[name]
    assert isinstance(array, hs.Array)
    assert array.via == "hyperslab", array.unsupported
    assert array.shape == expected.shape
    for key in [..., tuple(slice(1, None, 2) for _ in expected.shape), tuple(slice(-1, None) for _ in expected.shape)]:
        np.testing.assert_array_equal(array[key], expected[key])
        np.testing.assert_array_equal(array[key], expected[key])
    return array


@st.composite
def axis(draw: st.DrawFn, count: int, block: int) -> tuple[int, int, int, int]:
    stride = block + draw(st.integers(0, 3))
    return draw(st.integers(0, 3)), stride, count, block


def stop(axis: tuple[int, int, int, int]) -> int:
    start, stride, count, block = axis
    return start + (count - 1) * stride + block


@st.composite
def layouts(draw: st.DrawFn) -> list[Any]:
    """Mappings side by side along axis 0 of a virtual array of two axes, each of a source of its own."""
    found, row = [], 0
    for _ in range(draw(st.integers(1, 4))):
        factors = [draw(st.sampled_from([(1, 1, 1), (4, 2, 3), (6, 3, 2), (6, 1, 6), (5, 5, 1)])) for _ in range(2)]
        target, space = [], []
        for number, (length, block, count) in enumerate(factors):
            mine = draw(axis(count, block))
            mine = (mine[0] + (row if number == 0 else 0), *mine[1:])
            kind = draw(st.booleans())
            theirs = draw(axis(count, block)) if kind else draw(axis(length if length == count * block else 1, 1))
            if theirs[2] * theirs[3] != mine[2] * mine[3]:
                theirs = (0, 1, mine[2] * mine[3], 1)
            target.append(mine)
            space.append(theirs)
        row = stop(target[0]) + draw(st.integers(0, 2))
        options = draw(st.sampled_from([{}, {"chunks": True}, {"compression": "gzip", "chunks": (2, 3)}]))
        dtype = draw(st.sampled_from(["<i4", "<i4", "<i4", ">i2", "<f8", "u1"]))
        found.append((target, space, options, dtype, draw(st.integers(0, 5))))
    return found


@pytest.mark.slow
@FEW
@given(layout=layouts(), threads=st.sampled_from([1, None]))
def test_strided_mappings_are_what_h5py_reads(tmp_path: Path, layout: list[Any], threads: int | None) -> None:
    shape = tuple(max(stop(target[axis]) for target, *_ in layout) + 1 for axis in range(2))
    mappings = []
    for number, (target, space, options, dtype, missing) in enumerate(layout):
        file = tmp_path / f"s{number}.h5"
        theirs = tuple(max(stop(axis), 3) for axis in space)
        file.unlink(missing_ok=True)
        if missing:
            source(file, theirs, dtype, **options)
        mappings.append((regular(shape, *target), file.name, "x", regular(theirs, *space)))
    mapped(tmp_path / "v.h5", shape, mappings)
    array = check(tmp_path / "v.h5")
    with h5py.File(tmp_path / "v.h5") as file:
        np.testing.assert_array_equal(array.read(threads=threads), file["v"][...])
        lists = np.array([0, shape[0] - 1, 0]), slice(None, None, 2)
        np.testing.assert_array_equal(array[lists], file["v"][...][lists])


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_stacks_slices_and_other_ranks(tmp_path: Path, compression: str | None) -> None:
    chunks = {"chunks": (1, 2, 3), "compression": compression} if compression else {}
    for number in range(3):
        source(tmp_path / f"{number}.h5", (4, 5, 6), **chunks)
    layout = h5py.VirtualLayout((3, 4, 5, 6), "<i4")
    rows = h5py.VirtualLayout((3, 6), "<i4")
    columns = h5py.VirtualLayout((5, 3), "<i4")
    flat = h5py.VirtualLayout((3, 10, 12), "<i4")
    for number in range(3):
        one = h5py.VirtualSource(f"{number}.h5", "x", (4, 5, 6))
        layout[number], rows[number], columns[:, number], flat[number] = one, one[1, 2, :], one[3, :, 5], one
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        for name, made in {"stack": layout, "rows": rows, "columns": columns, "flat": flat}.items():
            file.create_virtual_dataset(name, made, fillvalue=-1)
    for name in ("stack", "rows", "columns", "flat"):
        check(tmp_path / "v.h5", name)


def test_lists_and_boxes_that_are_no_product(tmp_path: Path) -> None:
    source(tmp_path / "s.h5", (8, 9), chunks=(3, 4))
    source(tmp_path / "line.h5", (37,))
    listed = h5py.VirtualLayout((8, 9), "<i4")
    listed[[0, 3, 4, 7], 2:7] = h5py.VirtualSource("s.h5", "x", (8, 9))[2:6, [0, 1, 4, 7, 8]]
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("listed", listed, fillvalue=-1)
    corners = h5py.h5s.create_simple((8, 9))
    corners.select_hyperslab((0, 0), (1, 1), (1, 1), (3, 5))
    corners.select_hyperslab((2, 3), (1, 1), (1, 1), (4, 6), op=h5py.h5s.SELECT_OR)
    line = regular((37,), (0, 1, 37, 1))
    mapped(tmp_path / "v.h5", (8, 9), [(corners, "line.h5", "x", line)], mode="a", name="corners")
    check(tmp_path / "v.h5", "listed")
    check(tmp_path / "v.h5", "corners")


@pytest.mark.parametrize("lengths", [(7, 3), (3, 7), (0, 4), (None, 4), (None, None)])
@pytest.mark.parametrize("block", [1, 2])
def test_unlimited_mappings_follow_their_sources(tmp_path: Path, lengths: tuple[Any, Any], block: int) -> None:
    mappings = []
    for number, length in enumerate(lengths):
        if length is not None:
            source(tmp_path / f"{number}.h5", (length, 4), maxshape=(None, 4), chunks=(2, 4))
        target = regular((None, 4), (number * block, 2 * block, UNLIMITED, block), (0, 1, 1, 4))
        mappings.append((target, f"{number}.h5", "x", regular((None, 4), (0, 1, UNLIMITED, 1), (0, 1, 1, 4))))
    mapped(tmp_path / "v.h5", (5, 4), mappings, most=(None, 4))
    check(tmp_path / "v.h5")


def test_an_unlimited_mapping_grows_when_it_is_opened_again(tmp_path: Path) -> None:
    source(tmp_path / "s.h5", (3,), maxshape=(None,), chunks=(2,))
    one = (0, 1, UNLIMITED, 1)
    mapped(tmp_path / "v.h5", (3,), [(regular((None,), one), "s.h5", "x", regular((None,), one))], most=(None,))
    assert check(tmp_path / "v.h5").shape == (3,)
    with h5py.File(tmp_path / "s.h5", "a") as file:
        file["x"].resize((11,))
        file["x"][3:] = 7
    assert check(tmp_path / "v.h5").shape == (11,)


@pytest.mark.parametrize("there", [(0, 1, 2), (0, 1, 3), (1, 2), ()])
def test_a_row_of_numbered_sources_ends_before_the_first_missing_one(tmp_path: Path, there: tuple[int, ...]) -> None:
    for number in there:
        source(tmp_path / f"part{number}.h5", (2, 4))
    target = regular((None, 4), (1, 3, UNLIMITED, 2), (0, 1, 1, 4))
    space = h5py.h5s.create_simple((2, 4))
    mapped(tmp_path / "v.h5", (5, 4), [(target, "part%b.h5", "x", space)], most=(None, 4))
    check(tmp_path / "v.h5")


def test_later_mappings_count_and_missing_ones_do_not(tmp_path: Path) -> None:
    written = source(tmp_path / "s.h5", (7,))
    layout = h5py.VirtualLayout((20,), "<i4")
    layout[0:5] = h5py.VirtualSource("s.h5", "x", (7,))[:5]
    layout[2:6] = h5py.VirtualSource("s.h5", "x", (7,))[3:]
    layout[1:3] = h5py.VirtualSource("missing.h5", "x", (7,))[:2]
    layout[4:6] = h5py.VirtualSource("s.h5", "missing", (7,))[:2]
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    array = check(tmp_path / "v.h5")
    np.testing.assert_array_equal(array[:7], [*written[:2], *written[3:], -1])
    assert array.fill_value == -1


def test_what_a_smaller_source_does_not_have_is_the_fill_value(tmp_path: Path) -> None:
    """HDF5 reads past the source there, or fails: NumPy is the judge."""
    written = source(tmp_path / "s.h5", (5, 7))
    layout = h5py.VirtualLayout((6, 9), "<i4")
    layout[:, :9] = h5py.VirtualSource("s.h5", "x", (6, 10))[:6, :9]
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    expected = np.full((6, 9), -1)
    expected[:5, :7] = written
    np.testing.assert_array_equal(hs.open(tmp_path / "v.h5")["v"][...], expected)


def test_virtual_arrays_of_virtual_arrays_keep_each_fill_value(tmp_path: Path) -> None:
    source(tmp_path / "s.h5", (6, 4), chunks=(2, 3))
    (tmp_path / "inner").mkdir()
    (tmp_path / "s.h5").rename(tmp_path / "inner" / "s.h5")
    inner = h5py.VirtualLayout((9, 4), ">i2")
    inner[0:9:3] = h5py.VirtualSource("s.h5", "x", (6, 4))[0:6:2]
    with h5py.File(tmp_path / "inner" / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", inner, fillvalue=-7)
        file["soft"] = h5py.SoftLink("/x")
    outer = h5py.VirtualLayout((12, 4), "<i4")
    outer[1:10:2] = h5py.VirtualSource("inner/v.h5", "/soft", (9, 4))[2:7]
    outer[10:12, 1:3] = h5py.VirtualSource("inner/v.h5", "x", (9, 4))[0:4:3, 0:4:2]
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", outer, fillvalue=-1)
    check(tmp_path / "v.h5")


def test_circles_are_damage(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((4,), "<i4")
    layout[:] = h5py.VirtualSource("b.h5", "v", (4,))
    other = h5py.VirtualLayout((4,), "<i4")
    other[:] = h5py.VirtualSource("a.h5", "v", (4,))
    for name, made in (("a.h5", layout), ("b.h5", other)):
        with h5py.File(tmp_path / name, "w", libver="latest") as file:
            file.create_virtual_dataset("v", made)
    with pytest.raises(DamagedFile, match="one another"):
        hs.open(tmp_path / "a.h5")["v"][...]


def test_a_damaged_source_is_named(tmp_path: Path) -> None:
    source(tmp_path / "s.h5", (4,))
    layout = h5py.VirtualLayout((4,), "<i4")
    layout[:] = h5py.VirtualSource("s.h5", "x", (4,))
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout)
    whole = (tmp_path / "s.h5").read_bytes()
    (tmp_path / "s.h5").write_bytes(whole[:100])
    with pytest.raises(DamagedFile, match=r"s\.h5"):
        hs.open(tmp_path / "v.h5")["v"][...]


def test_a_source_that_changed_is_an_error(tmp_path: Path) -> None:
    source(tmp_path / "s.h5", (4,))
    layout = h5py.VirtualLayout((4,), "<i4")
    layout[:] = h5py.VirtualSource("s.h5", "x", (4,))
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout)
    array = hs.open(tmp_path / "v.h5")["v"]
    assert array.plan().chunk_count == 1
    source(tmp_path / "s.h5", (40,))
    with pytest.raises(FileChanged, match=r"s\.h5"):
        array[...]


def test_elements_of_any_length_come_from_the_same_file_only(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file["x"] = ["one", "two", "three"]
        layout = h5py.VirtualLayout((3,), h5py.string_dtype())
        layout[:] = h5py.VirtualSource(".", "x", (3,), h5py.string_dtype())
        file.create_virtual_dataset("v", layout)
    assert list(hs.open(tmp_path / "v.h5")["v"][...]) == ["one", "two", "three"]
    with h5py.File(tmp_path / "w.h5", "w", libver="latest") as file:
        layout = h5py.VirtualLayout((3,), h5py.string_dtype())
        layout[:] = h5py.VirtualSource("v.h5", "x", (3,), h5py.string_dtype())
        file.create_virtual_dataset("v", layout)
    array = hs.open(tmp_path / "w.h5")["v"]
    assert array.via == "h5py"
    assert list(array[...]) == ["one", "two", "three"]


@pytest.mark.slow
def test_ten_thousand_mappings_of_one_array(tmp_path: Path) -> None:
    """As versioned-hdf5 makes them: each chunk of a version is somewhere in one array of all chunks ever written."""
    count, length = 10_000, 16
    order = np.random.default_rng(3).permutation(count)
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        raw = file.create_dataset("raw", (count * length,), "<i4", chunks=(length,), compression="gzip")
        raw[...] = np.arange(count * length)
        layout = h5py.VirtualLayout((count * length,), "<i4")
        one = h5py.VirtualSource(".", "raw", (count * length,))
        for place, chunk in enumerate(order):
            layout[place * length : (place + 1) * length] = one[chunk * length : (chunk + 1) * length]
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    array = hs.open(tmp_path / "v.h5")["v"]
    started = time.perf_counter()
    assert array.via == "hyperslab"
    print(f"resolved in {time.perf_counter() - started:.3f} s")
    expected = np.arange(count * length).reshape(count, length)[order].reshape(-1)
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[1000:1040], expected[1000:1040])
    np.testing.assert_array_equal(array[::1001], expected[::1001])
    assert array._stored.stored_chunk_count == count


def test_many_sources_are_not_held_open(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((300, 4), "<i4")
    for number in range(300):
        source(tmp_path / f"{number}.h5", (4,))
        layout[number] = h5py.VirtualSource(f"{number}.h5", "x", (4,))
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 400, most))
    try:
        array = check(tmp_path / "v.h5")
        held = len(list(Path("/proc/self/fd").iterdir())) - before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    assert held <= (before + 400) // 4 + 8
    files, _, _ = array.plan().requests()
    assert len(set(files.tolist())) == 300


def test_virtual_arrays_are_pickled_and_described(tmp_path: Path) -> None:
    written = source(tmp_path / "s.h5", (6, 4), chunks=(2, 4))
    layout = h5py.VirtualLayout((6, 4), "<i4")
    layout[2:] = h5py.VirtualSource("s.h5", "x", (6, 4))[:4]
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    array = hs.open(tmp_path / "v.h5")["v"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[2:], written[:4])
    assert "6, 4" in repr(array)
    plan = array.plan((slice(2, 4), slice(None)))
    assert (plan.chunk_count, plan.fetched_nbytes) == (1, 32)


def test_sources_are_looked_for_where_hdf5_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("here", "prefix", "virtual"):
        (tmp_path / folder).mkdir()
    layout = h5py.VirtualLayout((3,), "<i4")
    layout[:] = h5py.VirtualSource("/nowhere/at/all/s.h5", "x", (3,))
    with h5py.File(tmp_path / "virtual" / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    monkeypatch.chdir(tmp_path / "here")
    check(tmp_path / "virtual" / "v.h5")
    source(tmp_path / "here" / "s.h5", (3,))
    check(tmp_path / "virtual" / "v.h5")
    written = source(tmp_path / "virtual" / "s.h5", (3,), "<i2")
    np.testing.assert_array_equal(check(tmp_path / "virtual" / "v.h5")[...], written)
