"""Reading HDF5 files that h5py wrote, element by element against NumPy; and what goes wrong, by name."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import DamagedFile, FileChanged, Unsupported

DTYPES = ["<f4", ">f8", "<i2", ">u4", "i1", "<f2", "<c8", "S5", "bool"]
CODECS: list[dict[str, Any]] = [
    {},
    {"compression": "gzip"},
    {"compression": "gzip", "shuffle": True},
    {"compression": "lzf", "shuffle": True, "fletcher32": True},
]
FEW = settings(max_examples=few(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def elements(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    if dtype == "bool":
        return numbers % 3 == 0
    if dtype == "S5":
        return (numbers % 9999).astype("S5")
    return (numbers % 251 % 100).astype(dtype)


@st.composite
def slices(draw: st.DrawFn, length: int) -> Any:
    kind = draw(st.sampled_from(["slice", "slice", "int", "list", "mask"]))
    if kind == "int" and length:
        return draw(st.integers(-length, length - 1))
    if kind == "list" and length:
        return draw(st.lists(st.integers(-length, length - 1), max_size=6))
    if kind == "mask":
        return np.array(draw(st.lists(st.booleans(), min_size=length, max_size=length)), bool)
    if draw(st.booleans()):
        return slice(None)
    bound = st.none() | st.integers(-length - 2, length + 2)
    return slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 5)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    ndim = draw(st.integers(0, 4))
    shape = tuple(draw(st.integers(0 if ndim < 3 else 1, 17)) for _ in range(ndim))
    chunks = tuple(draw(st.integers(1, max(1, length))) for length in shape)
    is_chunked = ndim > 0 and draw(st.booleans())
    codecs = draw(st.sampled_from(CODECS)) if is_chunked else {}
    key = tuple(draw(slices(length)) for length in shape)
    return shape, chunks if is_chunked else None, codecs, draw(st.sampled_from(DTYPES)), key


def expected(array: np.ndarray[Any, Any], key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """NumPy's answer, with lists axis by axis."""
    for axis in reversed(range(array.ndim)):
        chosen = np.array(key[axis], np.int64) if isinstance(key[axis], list) else key[axis]
        array = array[(slice(None),) * axis + (chosen,)]
    return array


@FEW
@given(case=cases(), threads=st.sampled_from([1, 3, None]))
def test_any_selection_of_any_array_is_numpys(tmp_path: Path, case: tuple[Any, ...], threads: int | None) -> None:
    shape, chunks, codecs, dtype, key = case
    written = elements(shape, dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        options = {"chunks": chunks, **codecs} if chunks and 0 not in shape else {}
        file.create_dataset("a", data=written, **options)
    array = hs.open(tmp_path / "a.h5")["a"]
    assert isinstance(array, hs.Array)
    assert array.via == "hyperslab"
    assert array.dtype == written.dtype
    wanted = expected(written, key)
    read = array.read(key, threads=threads)
    np.testing.assert_array_equal(read, wanted)
    assert np.shape(read) == wanted.shape
    out = np.empty(wanted.shape, written.dtype)
    assert array.read(key, out=out, threads=threads) is out
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(array[key], wanted)  # from the chunk cache


@pytest.mark.parametrize("codecs", CODECS)
def test_what_was_never_written_is_the_fill_value(tmp_path: Path, codecs: dict[str, Any]) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        array = file.create_dataset("a", (20, 30), "<i4", chunks=(7, 8), fillvalue=-5, **codecs)
        array[3:9, 10:17] = 4
        wanted = array[...]
    read = hs.open(tmp_path / "a.h5")["a"]
    np.testing.assert_array_equal(read[...], wanted)
    np.testing.assert_array_equal(read[::3, [29, 0, 11]], wanted[::3][:, [29, 0, 11]])
    assert read.fill_value == -5


@pytest.mark.parametrize("chunks", [None, (3, 400_000), (1, 70_000)])
def test_large_plain_arrays_are_read_in_parts(tmp_path: Path, chunks: tuple[int, ...] | None) -> None:
    written = np.arange(6 * 1_000_003, dtype="<f8").reshape(6, 1_000_003)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=written, chunks=chunks)
    array = hs.open(tmp_path / "a.h5")["a"]
    for key in [
        ...,
        (slice(1, 5), slice(7, 900_001)),
        (2, slice(None, None, 3)),
        (slice(None), 77),
        np.s_[::2, ::1000],
    ]:
        np.testing.assert_array_equal(array[key], written[key])


def test_a_large_output_that_is_used_again_is_read_as_a_new_one(tmp_path: Path) -> None:
    """Rows of its chunks go past the processor's caches, which nobody may see."""
    data = np.random.default_rng(5).integers(0, 1 << 30, (3000, 3001), np.int32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(700, 513))
    memory = np.full(data.nbytes + 64, 0xFF, np.uint8)
    array = hs.open(tmp_path / "a.h5")["x"]
    for start in (0, 4, 12):  # a row may begin anywhere in a vector
        out = memory[start : start + data.nbytes].view(np.int32).reshape(data.shape)
        out[...] = -1
        assert array.read(..., out=out) is out
        assert np.array_equal(out, array[...])
        assert np.array_equal(out, data)
        assert (memory[start + data.nbytes :] == 0xFF).all()
        memory[:] = 0xFF


def test_an_output_of_another_dtype_or_order_is_filled_too(tmp_path: Path) -> None:
    written = np.arange(60, dtype=">i2").reshape(6, 10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = written
    array = hs.open(tmp_path / "a.h5")["a"]
    for out in (np.empty((6, 10), "f8"), np.empty((10, 6), ">i2").T, np.empty((6, 20), ">i2")[:, ::2]):
        array.read(out=out)
        np.testing.assert_array_equal(out, written)
    with pytest.raises(ValueError, match="shape"):
        array.read(out=np.empty((6, 9), "f8"))
    with pytest.raises(TypeError):
        array.read(out=np.empty((6, 10), "i1"))


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ((6,), IndexError),
        ((0, -11), IndexError),
        ((0, 0, 0), IndexError),
        ((..., ...), IndexError),
        ((slice(None, None, -1),), ValueError),
        (([0, 99],), IndexError),
        ((np.ones(5, bool),), ValueError),
        ((None,), TypeError),
        ((True,), TypeError),
        ((1.5,), TypeError),
        (([[0]],), TypeError),
        (([0.5],), TypeError),
    ],
)
def test_what_is_no_selection_is_refused(tmp_path: Path, key: Any, error: type[Exception]) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = np.zeros((6, 10))
    with pytest.raises(error):
        hs.open(tmp_path / "a.h5")["a"][key]


def test_elements_of_every_kind(tmp_path: Path) -> None:
    compound = np.array([(1, 2.5, b"ab"), (3, 4.5, b"c")], dtype=[("i", "<i2"), ("f", ">f8"), ("s", "S3")])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["compound"] = compound
        file["text"] = ["", "ä", "abc" * 50]
        file["ragged"] = np.array([np.arange(3), np.arange(0), np.arange(5)], dtype=h5py.vlen_dtype("<i4"))
        file["names"] = np.array([0, 2, 1], dtype=h5py.enum_dtype({"no": 0, "yes": 1, "maybe": 2}, "i1"))
        file.create_dataset("blocks", (2,), np.dtype(("<i8", (6,))))[...] = np.arange(12).reshape(2, 6)
        file["scalar"] = 7
        file["empty"] = h5py.Empty("f4")
        mixed = np.empty(2, [("n", "i4"), ("t", h5py.string_dtype())])
        mixed[0], mixed[1] = (1, "one"), (2, "zwei")
        file["mixed"] = mixed
    root = hs.open(tmp_path / "a.h5")
    np.testing.assert_array_equal(root["compound"][...], compound)
    np.testing.assert_array_equal(root["compound"]["f"], compound["f"])
    assert list(root["text"][:]) == ["", "ä", "abc" * 50]
    assert root["text"][1] == "ä"
    assert [list(one) for one in root["ragged"][:]] == [[0, 1, 2], [], [0, 1, 2, 3, 4]]
    assert root["names"][:].tolist() == [0, 2, 1]
    assert h5py.check_enum_dtype(root["names"].dtype) == {"no": 0, "yes": 1, "maybe": 2}
    np.testing.assert_array_equal(root["blocks"][...], np.arange(12).reshape(2, 6))
    assert root["scalar"][()] == 7
    assert root["scalar"][...].shape == ()
    assert [tuple(one) for one in root["mixed"][:]] == [(1, "one"), (2, "zwei")]
    with pytest.raises(Unsupported, match="null"):
        root["empty"][...]


def test_attributes_are_python_values(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["text"] = "grün"
        file.attrs["bytes"] = np.bytes_(b"fixed")
        file.attrs["texts"] = ["a", "b"]
        file.attrs["number"] = np.float32(1.5)
        file.attrs["numbers"] = np.arange(3, dtype=">i2")
        file.attrs["nothing"] = h5py.Empty("f4")
    attrs = hs.open(tmp_path / "a.h5").attrs
    assert attrs["text"] == "grün"
    assert attrs["bytes"] == "fixed"
    assert list(attrs["texts"]) == ["a", "b"]
    assert attrs["number"] == 1.5
    assert attrs["numbers"].dtype == ">i2"
    assert attrs["numbers"].tolist() == [0, 1, 2]
    assert attrs["nothing"] is None
    with h5py.File(tmp_path / "a.h5") as file:
        assert set(attrs) == set(file.attrs)


def test_links_are_followed_and_circles_end(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as other:
        other["inner/x"] = [5]
        other["back"] = h5py.ExternalLink("a.h5", "there")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = [1]
        file["hard"] = file["g"]
        file["soft"] = h5py.SoftLink("g/x")
        file["circle"] = h5py.SoftLink("/circle")
        file["nowhere"] = h5py.SoftLink("/nothing")
        file["there"] = h5py.ExternalLink("b.h5", "back")
        file["other"] = h5py.ExternalLink("b.h5", "inner")
        file["g/self"] = file["g"]
    root = hs.open(tmp_path / "a.h5")
    assert root["soft"][0] == root["hard/x"][0] == root["/g/self/self/x"][0] == 1
    assert root["other/x"][0] == 5
    with h5py.File(tmp_path / "a.h5") as file:
        for name in ("circle", "nowhere", "there", "g/x/y", "g/z"):
            assert (name in root) == (name in file), name  # a link is there though it leads nowhere
            with pytest.raises(KeyError):
                root[name]
    assert {array.name for array in root.walk()} >= {"/g/x"}
    assert "again" in repr(root)
    assert set(root.groups) == {"g", "hard", "other"}


def test_a_file_that_changes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(100_000), chunks=(1000,), compression="gzip")
    array = hs.open(path)["a"]
    array[:10]
    with path.open("r+b") as raw:
        raw.truncate(path.stat().st_size // 2)
    for key in (slice(0, 10), slice(None)):
        with pytest.raises(FileChanged, match=r"a\.h5"):
            array[key]


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        array = file.create_dataset("g/a", data=np.arange(400.0).reshape(20, 20), chunks=(5, 5), compression="gzip")
        chunk = array.id.get_chunk_info_by_coord((5, 10))
    with path.open("r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * chunk.size)
    array = hs.open(path)["g/a"]
    np.testing.assert_array_equal(array[:5], np.arange(400.0).reshape(20, 20)[:5])
    with pytest.raises(DamagedFile, match=rf"/g/a of .*a\.h5, chunk \[1, 2\] at offset {chunk.byte_offset}"):
        array[...]


def test_threads_share_and_processes_inherit_an_array(tmp_path: Path) -> None:
    written = np.random.default_rng(0).normal(size=(64, 64, 64))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=written, chunks=(8, 32, 32), compression="gzip", shuffle=True)
    array = hs.open(tmp_path / "a.h5")["a"]
    wrong: list[int] = []

    def read(place: int) -> None:
        if not np.array_equal(array[place : place + 9, ::2], written[place : place + 9, ::2]):
            wrong.append(place)

    threads = [threading.Thread(target=read, args=(place,)) for place in range(0, 55, 5)]
    for thread in threads:
        thread.start()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        totals = pool.map(_total, [array] * 4)
    for thread in threads:
        thread.join()
    assert not wrong
    assert np.allclose(totals, written.sum())
    again = pickle.loads(pickle.dumps(array))
    np.testing.assert_array_equal(again[3], written[3])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(array[...], written) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _total(array: hs.Array) -> float:
    return float(array[...].sum())


def test_an_unknown_codec_falls_back_to_h5py_or_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    written = np.arange(1000.0).reshape(10, 100)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=written, chunks=(5, 50), compression=hdf5plugin.Zfp(reversible=True))
    array = hs.open(tmp_path / "a.h5")["a"]
    assert array.via == "h5py"
    np.testing.assert_array_equal(array[::3, [5, 1]], written[::3][:, [5, 1]])
    monkeypatch.setattr("hyperslab.archive.tree.fallback.is_possible", lambda: False)
    array = hs.open(tmp_path / "a.h5")["a"]
    with pytest.raises(Unsupported, match="32013"):
        array[...]
    assert "unsupported" in repr(array)


def test_a_closed_file_says_so(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = [1]
    with hs.open(tmp_path / "a.h5") as root:
        assert root["a"][0] == 1
    with pytest.raises(ValueError, match="closed"):
        root["a"]


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hs.open(tmp_path / "none.h5")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(Unsupported, match="no known format"):
        hs.open(tmp_path / "text")


def test_what_only_h5py_can_read_says_so(tmp_path) -> None:
    """A virtual array of another kind of number than we convert: right, through h5py, never filled."""
    with h5py.File(tmp_path / "part.h5", "w") as part:
        part["x"] = np.arange(10, dtype="f2")
    layout = h5py.VirtualLayout((10,), "i4")
    layout[:] = h5py.VirtualSource(tmp_path / "part.h5", "x", (10,), "f2")
    with h5py.File(tmp_path / "whole.h5", "w") as whole:
        whole.create_virtual_dataset("x", layout, fillvalue=-1)
    array = hs.open(tmp_path / "whole.h5")["x"]
    assert array.unsupported
    assert array.via == "h5py"
    assert np.array_equal(array[...], np.arange(10))


def test_a_folder_that_is_no_zarr_hierarchy_is_refused(tmp_path) -> None:
    with pytest.raises(Unsupported, match="without Zarr metadata"):
        hs.open(tmp_path)
