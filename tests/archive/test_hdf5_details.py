"""Details of HDF5: attributes that are other floats, arrays in several files, filters without a name, text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab import h5
from hyperslab.cli import app
from hyperslab.errors import Unsupported

sys.path.append(str(Path(__file__).parents[1] / "engine"))
import made_hdf5

BRAIN = ((8, 7, 0), 0, 2, "<", 127)  # bfloat16
TWENTY_BITS = ((6, 13, 0), 7, 4, ">", 31)


def put_attribute(holder: Any, name: str, kind: h5py.h5t.TypeFloatID, values: np.ndarray[Any, Any]) -> None:
    space = h5py.h5s.create_simple(values.shape) if values.shape else h5py.h5s.create(h5py.h5s.SCALAR)
    h5py.h5a.create(holder.id, name.encode(), kind, space).write(np.asarray(values, "f8"))


@pytest.mark.parametrize("layout", [BRAIN, TWENTY_BITS])
def test_attributes_in_other_float_layouts_are_what_h5py_makes_of_them(tmp_path: Path, layout: Any) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3.0)
        kind = made_hdf5.float_type(*layout)
        for holder in (file, file["x"]):
            put_attribute(holder, "one", kind, np.float64(0.1))
            put_attribute(holder, "several", kind, np.array([[1.5, -2.0, 1e4], [0.0, np.inf, 3e-4]]))
    with h5py.File(path) as theirs, h5.File(path) as same:
        ours = hs.open(path)
        for name in ("one", "several"):
            expected = theirs.attrs[name]
            for found in (ours.attrs[name], ours["x"].attrs[name], same.attrs[name], same["x"].attrs[name]):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)
    hs.index(path).save(tmp_path / "a.hs")
    np.testing.assert_array_equal(hs.open(tmp_path / "a.hs").attrs["several"], expected)
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(path, engine="hyperslab") as dataset:
        assert set(dataset["x"].attrs) == {"one", "several"}


def test_xarray_warns_of_an_attribute_that_cannot_be_read(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3.0)
        put_attribute(file["x"], "scale_factor", made_hdf5.float_type((4, 3, 0), 0, 1, "<", 7), np.float64(0.5))
        file["x"].attrs["units"] = "m"
    said = r"attribute 'scale_factor' of /x of .*a\.h5 is left out: .*a float of 1 bytes"
    with pytest.warns(UserWarning, match=said), xarray.open_dataset(tmp_path / "a.h5", engine="hyperslab") as dataset:
        assert dict(dataset["x"].attrs) == {"units": "m"}


def test_a_contiguous_array_in_several_external_files_has_no_chunks(tmp_path: Path) -> None:
    data = np.arange(40, dtype="i4").reshape(10, 4)
    for number in range(2):
        (tmp_path / f"{number}.raw").write_bytes(data[5 * number : 5 * number + 5].tobytes())
    with h5py.File(tmp_path / "a.h5", "w") as file:
        external = [(str(tmp_path / f"{number}.raw"), 0, 80) for number in range(2)]
        file.create_dataset("x", data.shape, data.dtype, external=external)
        assert file["x"].chunks is None
    hs.index(tmp_path / "a.h5").save(tmp_path / "a.hs")
    for path in (tmp_path / "a.h5", tmp_path / "a.hs"):
        array = hs.open(path)["x"]
        assert (array.chunks, array.chunk_lengths) == (None, None)
        np.testing.assert_array_equal(array[...], data)


def test_a_filter_without_a_name_is_said_to_have_none(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        created.set_chunk((10,))
        created.set_filter(32000, 0, ())
        h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((10,)), created)
        file["x"].id.write_direct_chunk((0,), b"12345678")
    stored = bytearray((tmp_path / "a.h5").read_bytes())
    at = stored.index(b"lzf\0")
    stored[at : at + 3] = bytes(3)
    assert stored.count((32000).to_bytes(2, "little")) == 1
    at = stored.index((32000).to_bytes(2, "little"))
    stored[at : at + 2] = (40000).to_bytes(2, "little")
    (tmp_path / "a.h5").write_bytes(stored)
    array = hs.open(tmp_path / "a.h5")["x"]
    assert "codec without a name (HDF5 filter 40000)" in str(array.unsupported)
    with pytest.raises(Unsupported, match="HDF5 filter 40000"):
        array[...]


@pytest.mark.parametrize("suffix", ["h5", "hs"])
def test_text_keeps_its_character_set_in_a_copy(tmp_path: Path, suffix: str) -> None:
    kinds = {f"{encoding}_{nbytes}": h5py.string_dtype(encoding, nbytes)
             for encoding in ("ascii", "utf-8") for nbytes in (None, 6)}  # fmt: skip
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, dtype in kinds.items():
            file.create_dataset(name, data=np.array([b"abc", b"d"], dtype), dtype=dtype)
    hs.index(tmp_path / "a.h5").save(tmp_path / "a.hs")
    copied = CliRunner().invoke(app, ["convert", str(tmp_path / f"a.{suffix}"), str(tmp_path / "copy.h5")])
    assert copied.exit_code == 0, copied.output
    with h5py.File(tmp_path / "copy.h5") as file:
        for name, dtype in kinds.items():
            assert h5py.check_string_dtype(file[name].dtype) == h5py.check_string_dtype(dtype), name
            assert file[name][...].tolist() == [b"abc", b"d"]
