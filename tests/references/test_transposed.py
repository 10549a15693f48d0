"""Arrays of Zarr 3 that were transposed more than once: references transpose them once, or refuse them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_icechunk import repository, written
from test_kerchunk import mapped
from test_left_out import virtualizarrs

import hyperslab as hs

zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore:.*(Zarr V3 spec|Zarr version 3 spec|consolidated|Numcodecs codecs)")

DATA = np.arange(2 * 3 * 400, dtype="i4").reshape(2, 3, 400)
TURNED, BACK, REVERSED = (1, 2, 0), (2, 0, 1), (2, 1, 0)
ORDERS: dict[str, tuple[tuple[int, ...], ...]] = {
    "turned_twice": (TURNED, TURNED), "to_and_fro": (TURNED, BACK), "reversed": ((0, 2, 1), TURNED),
    "thrice": (TURNED, TURNED, REVERSED), "reversed_twice": (REVERSED, REVERSED), "once": (REVERSED,),
}  # fmt: skip


def source(folder: Path) -> Path:
    group = zarr.open_group(folder / "a.zarr", mode="w")
    for name, orders in ORDERS.items():
        filters = [zarr.codecs.TransposeCodec(order=order) for order in orders]
        array = group.create_array(name, shape=DATA.shape, chunks=(2, 3, 100), dtype="i4", filters=filters)
        array[:] = DATA
    return folder / "a.zarr"


def check(group: Any, names: Any) -> None:
    for name in names:
        np.testing.assert_array_equal(group[name][...], DATA, err_msg=name)


def test_zarr_3s_references_transpose_once(tmp_path: Path) -> None:
    path = source(tmp_path)
    referenced, group = written(hs.index(path), repository(tmp_path))
    assert not referenced.left_out
    check(group, ORDERS)
    check(virtualizarrs(path, False), ORDERS)
    for name in ORDERS:
        chain = [codec.to_dict() for codec in group[name].metadata.codecs]
        assert sum(codec["name"] == "transpose" for codec in chain) <= 1


def test_zarr_2s_references_are_in_c_or_fortran_order_or_refused(tmp_path: Path) -> None:
    saved = hs.index(source(tmp_path)).save(tmp_path / "refs.json", skip_unsupported=True)
    assert set(saved.left_out) == {"turned_twice", "thrice"}
    assert all("another order than reversed" in reason for reason in saved.left_out.values())
    left = set(ORDERS) - set(saved.left_out)
    check(zarr.open_group(mapped(tmp_path / "refs.json"), mode="r", zarr_format=2), left)
    check(hs.open(tmp_path / "refs.json"), left)


def test_a_codec_between_two_transpositions_is_refused(tmp_path: Path) -> None:
    document = source(tmp_path) / "turned_twice" / "zarr.json"
    described = json.loads(document.read_text())
    settings = {"dtype": "<i4", "astype": "<i4", "offset": 0, "scale": 1}
    described["codecs"].insert(1, {"name": "numcodecs.fixedscaleoffset", "configuration": settings})
    document.write_text(json.dumps(described))
    np.testing.assert_array_equal(hs.open(tmp_path / "a.zarr")["turned_twice"][...], DATA)
    saved = hs.index(tmp_path / "a.zarr").save(tmp_path / "refs.json", skip_unsupported=True)
    assert saved.left_out["turned_twice"] == "it is transposed twice, with another codec in between"
