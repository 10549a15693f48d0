"""Compressed FITS images that cfitsio wrote, against what fitsio reads: every method, dithering, and cut chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile, ReadError, Unsupported

fitsio = pytest.importorskip("fitsio", reason="not installed: pip install 'hyperslab[formats]'")

DITHERS = ["NO_DITHER", "SUBTRACTIVE_DITHER_1", "SUBTRACTIVE_DITHER_2"]
SHAPE = (11, 130)
CHUNK_SHAPES = [(1, 130), (4, 50), (11, 130)]


def integers(dtype: str) -> np.ndarray[Any, Any]:
    """A slope with noise; some rows are constant, some are nothing but noise."""
    random = np.random.default_rng(3)
    limit = min(np.iinfo(dtype).max, 1 << 20)
    values = np.arange(SHAPE[1]) % 50 + random.integers(0, 9, SHAPE)
    values[2], values[3:5] = 7, random.integers(0, limit, (2, SHAPE[1]))
    return values.astype(dtype)


def floats(dtype: str, is_exact: bool) -> np.ndarray[Any, Any]:
    """Noise about a slope; zeros, a row of one value, and one that no integers can stand for."""
    random = np.random.default_rng(4)
    values = random.normal(100, 5, SHAPE) + np.arange(SHAPE[1])
    values[1, ::3], values[5] = 0, 3.25
    if not is_exact:
        values[2, 5:9], values[7, ::2] = np.nan, 1e30
    return values.astype(dtype)


def written(path: Path, values: np.ndarray[Any, Any], **how: Any) -> tuple[Any, Any]:
    """The image as fitsio reads it, and as we open it."""
    with fitsio.FITS(path, "rw", clobber=True) as file:
        file.write(values, extname="IMAGE", **how)
    with fitsio.FITS(path) as file:
        return file["IMAGE"].read(), hs.open(path)["IMAGE"]


def check(expected: Any, array: Any) -> None:
    assert array.unsupported is None
    assert array.via == "hyperslab"
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[3:9:2, 45:115:7], expected[3:9:2, 45:115:7])
    np.testing.assert_array_equal(array[-1, -1], expected[-1, -1])


@pytest.mark.parametrize("chunk_shape", CHUNK_SHAPES)
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
@pytest.mark.parametrize("method", ["RICE_1", "GZIP_1", "GZIP_2"])
def test_integers(tmp_path: Path, method: str, dtype: str, chunk_shape: tuple[int, ...]) -> None:
    check(*written(tmp_path / "a.fits", integers(dtype), compress=method, tile_dims=chunk_shape))


@pytest.mark.parametrize("chunk_shape", CHUNK_SHAPES)
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
def test_masks(tmp_path: Path, dtype: str, chunk_shape: tuple[int, ...]) -> None:
    """PLIO's runs of few values; cfitsio itself aborts on noise."""
    values = np.zeros(SHAPE, dtype)
    values[1:7, 20:90], values[3, 30:60:7], values[8, ::11], values[9] = 1, 5, 100, np.arange(SHAPE[1]) // 30
    values[10, 5:9] = min(np.iinfo(dtype).max, 70_000)
    check(*written(tmp_path / "a.fits", values, compress="PLIO_1", tile_dims=chunk_shape))


@pytest.mark.parametrize("method", ["RICE_1", "GZIP_1"])
def test_negative_integers(tmp_path: Path, method: str) -> None:
    values = integers("i2") - np.int16(300)
    values[4, ::5] = np.iinfo("i2").min
    check(*written(tmp_path / "a.fits", values, compress=method, tile_dims=(4, 50)))


@pytest.mark.parametrize("chunk_shape", CHUNK_SHAPES)
@pytest.mark.parametrize("dither", DITHERS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("method", ["RICE_1", "GZIP_1", "GZIP_2"])
def test_quantized_floats(tmp_path: Path, method: str, dtype: str, dither: str, chunk_shape: tuple[int, ...]) -> None:
    how = {"compress": method, "tile_dims": chunk_shape, "qmethod": dither, "qlevel": 16, "dither_seed": 9998}
    for is_exact in (True, False):
        check(*written(tmp_path / f"{is_exact}.fits", floats(dtype, is_exact), **how))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("method", ["GZIP_1", "GZIP_2"])
def test_floats_as_they_are(tmp_path: Path, method: str, dtype: str) -> None:
    how = {"compress": method, "tile_dims": (4, 50), "qlevel": 0}
    values = floats(dtype, is_exact=False)
    expected, array = written(tmp_path / "a.fits", values, **how)
    np.testing.assert_array_equal(expected, values)
    check(expected, array)


def test_three_axes_and_the_chunks_that_a_selection_reads(tmp_path: Path) -> None:
    values = np.arange(5 * 30 * 40, dtype="i4").reshape(5, 30, 40) % 977
    expected, array = written(tmp_path / "a.fits", values, compress="RICE_1", tile_dims=(2, 13, 17))
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[4, 25:, 33:36], expected[4, 25:, 33:36])
    assert array.plan((4, slice(25, None), slice(33, 36))).chunk_count == 4


def test_what_is_not_read_is_refused_by_name(tmp_path: Path) -> None:
    _, array = written(tmp_path / "a.fits", integers("i4"), compress="HCOMPRESS_1", tile_dims=(11, 130))
    assert array.shape == SHAPE
    with pytest.raises(Unsupported, match="HCOMPRESS_1"):
        array[...]


def test_damage_is_an_error_or_the_right_size(tmp_path: Path) -> None:
    """Each of many places of the table, the heap and the header is changed."""
    path = tmp_path / "a.fits"
    values = floats("f4", is_exact=False)
    written(path, values, compress="RICE_1", tile_dims=(4, 50), qmethod=1)
    good = path.read_bytes()
    random = np.random.default_rng(5)
    for place in random.integers(2880, len(good), 400):
        changed = bytearray(good)
        changed[place] ^= int(random.integers(1, 256))
        path.write_bytes(changed)
        try:
            root = hs.open(path)
            arrays = [root[name] for name in root if isinstance(root[name], hs.Array)]
            for array in arrays:
                if array.shape is not None and np.prod(array.shape, dtype=float) < 1e6:
                    assert array[...].shape == array.shape
        except (DamagedFile, Unsupported, ReadError, KeyError):
            pass
    for length in random.integers(2880, len(good), 100):
        path.write_bytes(good[:length])
        try:
            array = hs.open(path)["IMAGE"]
            assert array[...].shape == array.shape
        except (DamagedFile, Unsupported, ReadError, KeyError):
            pass
