"""HDF4 arrays that the HDF4 library encoded, against what pyhdf reads: every coder, whole and in chunks."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile, ReadError, Unsupported

pytest.importorskip("pyhdf", reason="not installed: pip install 'hyperslab[formats]'")
from pyhdf import _hdfext
from pyhdf.SD import SD, SDC

SHAPE = (13, 30)
KINDS = {"i1": "INT8", "u1": "UINT8", "i2": "INT16", "u2": "UINT16", "i4": "INT32", "u4": "UINT32"}
KINDS |= {"f4": "FLOAT32", "f8": "FLOAT64"}
RUN_LENGTH, SKIPPING_HUFFMAN, DEFLATE = 1, 3, 4
MOST_AXES = 32
LIBRARY = ctypes.CDLL(_hdfext.__file__)


class ChunkDefinition(ctypes.Structure):
    """`HDF_CHUNK_DEF` of `hdf.h`: chunk lengths, coder, model, and the coder's parameters."""

    _fields_ = (
        ("lengths", ctypes.c_int32 * MOST_AXES),
        ("coder", ctypes.c_int32),
        ("model", ctypes.c_int32),
        ("parameters", ctypes.c_int32 * 8),
    )


def values(dtype: str) -> np.ndarray[Any, Any]:
    """Runs, noise, and rows of one value."""
    random = np.random.default_rng(6)
    found = random.integers(0, 100, SHAPE)
    found[2:5], found[7, 4:20] = 9, 3
    if np.dtype(dtype).kind == "f":
        return (found / 7).astype(dtype)
    return (found - (50 if dtype.startswith("i") else 0)).astype(dtype)


def written(path: Path, dtype: str, prepare: Any) -> tuple[Any, Any]:
    """What pyhdf reads of an array that it wrote, and the same as we open it."""
    file = SD(str(path), SDC.WRITE | SDC.CREATE | SDC.TRUNC)
    array = file.create("a", getattr(SDC, KINDS[dtype]), SHAPE)
    prepare(array)
    array[:] = values(dtype)
    array.endaccess()
    file.end()
    file = SD(str(path))
    array = file.select("a")
    found = np.asarray(array.get())
    array.endaccess()
    file.end()
    return found, hs.open(path)["a"]


def check(expected: Any, array: Any) -> None:
    assert array.unsupported is None
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[2:11:3, 25:], expected[2:11:3, 25:])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("coder", [RUN_LENGTH, SKIPPING_HUFFMAN, DEFLATE])
def test_whole_arrays(tmp_path: Path, coder: int, dtype: str) -> None:
    parameters = {RUN_LENGTH: (), SKIPPING_HUFFMAN: (np.dtype(dtype).itemsize,), DEFLATE: (6,)}[coder]
    expected, array = written(tmp_path / "a.hdf", dtype, lambda array: array.setcompress(coder, *parameters))
    np.testing.assert_array_equal(expected, values(dtype))
    check(expected, array)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f8"])
@pytest.mark.parametrize("coder", [0, RUN_LENGTH, SKIPPING_HUFFMAN, DEFLATE])
def test_chunks(tmp_path: Path, coder: int, dtype: str) -> None:
    parameter = {SKIPPING_HUFFMAN: np.dtype(dtype).itemsize, DEFLATE: 6}.get(coder, 0)

    def prepare(array: Any) -> None:
        definition = ChunkDefinition(coder=coder)
        definition.lengths[:2], definition.parameters[0] = (4, 7), parameter
        assert LIBRARY.SDsetchunk(array._id, definition, 3 if coder else 1) == 0

    expected, array = written(tmp_path / "a.hdf", dtype, prepare)
    np.testing.assert_array_equal(expected, values(dtype))
    assert array.chunks == (4, 7)
    check(expected, array)


@pytest.mark.parametrize("is_signed", [0, 1])
@pytest.mark.parametrize("is_filled", [0, 1])
@pytest.mark.parametrize(("dtype", "first_bit", "nbits"), [("i1", 5, 4), ("u2", 9, 7), ("i4", 12, 13), ("u4", 31, 32)])
def test_some_bits(tmp_path: Path, dtype: str, first_bit: int, nbits: int, is_filled: int, is_signed: int) -> None:
    def prepare(array: Any) -> None:
        assert LIBRARY.SDsetnbitdataset(array._id, first_bit, nbits, is_signed, is_filled) != -1

    check(*written(tmp_path / "a.hdf", dtype, prepare))


@pytest.mark.parametrize("coder", [RUN_LENGTH, SKIPPING_HUFFMAN])
def test_damage_is_an_error_or_the_right_size(tmp_path: Path, coder: int) -> None:
    path = tmp_path / "a.hdf"
    written(path, "i2", lambda array: array.setcompress(coder, *([2] if coder == SKIPPING_HUFFMAN else [])))
    good = path.read_bytes()
    random = np.random.default_rng(8)
    for place in random.integers(4, len(good), 400):
        changed = bytearray(good)
        changed[place] ^= int(random.integers(1, 256))
        path.write_bytes(changed)
        try:
            array = hs.open(path)["a"]
            assert array.shape is None or np.prod(array.shape) > 1e6 or array[...].shape == array.shape
        except (DamagedFile, Unsupported, ReadError, KeyError):
            pass
