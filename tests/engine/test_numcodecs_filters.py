"""Filters of numcodecs in Zarr 2 that round, cast, or pack bits: our arrays are what numcodecs decodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import Unsupported

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
pytestmark = pytest.mark.filterwarnings("ignore:.*(Zarr V3 spec|Zarr version 3 spec|Numcodecs codecs)")

FLOATS = np.linspace(-30, 70, 700).reshape(35, 20)
WHOLE = np.arange(700, dtype="i8").reshape(35, 20) - 300


def written(folder: Path, data: np.ndarray[Any, Any], filters: list[Any], **options: Any) -> tuple[Any, Any]:
    """An array as zarr-python reads it, and as we do."""
    group = zarr.open_group(folder / "a.zarr", mode="w", zarr_format=2)
    array = group.create_array("x", shape=data.shape, chunks=(10, 7), dtype=data.dtype, filters=filters, **options)
    array[:] = data
    return array[...], hs.open(folder / "a.zarr")["x"]


CASES: dict[str, tuple[Any, list[Any]]] = {
    "bitround f4": (FLOATS.astype("f4"), [numcodecs.BitRound(5)]),
    "bitround f8": (FLOATS, [numcodecs.BitRound(9)]),
    "quantize": (FLOATS, [numcodecs.Quantize(2, "f8")]),
    "quantize to f4": (FLOATS, [numcodecs.Quantize(1, "<f8", "<f4")]),
    "quantize big-endian": (FLOATS.astype(">f4"), [numcodecs.Quantize(1, ">f4")]),
    "astype f4": (FLOATS, [numcodecs.AsType("<f4", "<f8")]),
    "astype i2": (WHOLE, [numcodecs.AsType("<i2", "<i8")]),
    "astype u2": (np.abs(WHOLE), [numcodecs.AsType(">u2", "<i8")]),
    "astype i2 to f8": (WHOLE.astype("f8"), [numcodecs.AsType("<i2", "<f8")]),
    "astype same": (WHOLE, [numcodecs.AsType("<i8", "<i8")]),
    "packbits": (WHOLE % 3 == 0, [numcodecs.PackBits()]),
    "bitround and shuffle": (FLOATS.astype("f4"), [numcodecs.BitRound(5), numcodecs.Shuffle(4)]),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("case", CASES)
def test_what_numcodecs_decodes(tmp_path: Path, case: str, order: Any) -> None:
    data, filters = CASES[case]
    expected, found = written(tmp_path, data, filters, order=order)
    assert found.unsupported is None
    np.testing.assert_array_equal(found[...], expected)
    np.testing.assert_array_equal(found[3:33:2, 5:], expected[3:33:2, 5:])


@pytest.mark.parametrize("filters", [[numcodecs.AsType("<i8", "<i2")], [numcodecs.AsType("<f8", "<f4")]])
def test_a_cast_that_numpy_does_as_the_machine_does_is_refused_by_name(tmp_path: Path, filters: list[Any]) -> None:
    dtype = filters[0].decode_dtype
    _, found = written(tmp_path, WHOLE.astype(dtype), filters)
    with pytest.raises(Unsupported, match="codec astype"):
        found[...]


def test_lzma_is_refused_by_name(tmp_path: Path) -> None:
    _, found = written(tmp_path, WHOLE, [], compressors=numcodecs.LZMA())
    with pytest.raises(Unsupported, match="codec lzma"):
        found[...]


def test_a_codec_without_a_name_is_said_to_have_none(tmp_path: Path) -> None:
    written(tmp_path, WHOLE, [], compressors=None)
    document = tmp_path / "a.zarr" / "x" / ".zarray"
    document.write_text(document.read_text().replace('"compressor": null', '"compressor": {"id": ""}'))
    with pytest.raises(Unsupported, match="codec without a name"):
        hs.open(tmp_path / "a.zarr")["x"][...]


def test_references_of_rounded_numbers_need_no_filter(tmp_path: Path) -> None:
    expected, _ = written(tmp_path, *CASES["bitround f4"])
    saved = hs.index(tmp_path / "a.zarr").save(tmp_path / "refs.json")
    assert not saved.left_out
    np.testing.assert_array_equal(hs.open(tmp_path / "refs.json")["x"][...], expected)
