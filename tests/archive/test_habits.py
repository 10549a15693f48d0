"""Habits of h5py users either work, or the error says what to use."""

from __future__ import annotations

import os
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

import hyperslab
from hyperslab.errors import DamagedFile, Unsupported


@pytest.fixture
def both(tmp_path):
    """The same file, open with h5py and with hyperslab."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["ocean/sst"] = np.arange(12.0).reshape(3, 4)
        file["ocean/deep/salt"] = np.arange(3)
        file["depth"] = 5
        file["ocean/again"] = file["ocean/deep"]
        file["gone"] = h5py.SoftLink("/nowhere")
        file.attrs["title"] = "x"
    with h5py.File(path) as theirs, hyperslab.open(path) as ours:
        yield theirs, ours


def test_a_group_is_a_mapping_as_h5py_has_it(both) -> None:
    theirs, ours = both
    assert (list(ours), len(ours), list(ours.keys())) == (list(theirs), len(theirs), list(theirs.keys()))
    assert [name for name, _ in ours["ocean"].items()] == [name for name, _ in theirs["ocean"].items()]
    assert len(list(ours["ocean"].values())) == 3
    for name in ("ocean", "ocean/sst", "/depth", "gone", "none", "ocean/none"):
        assert (name in ours) == (name in theirs)
    assert ours.get("none") is None
    assert ours.attrs["title"] == theirs.attrs["title"]


def test_visititems_meets_what_h5py_meets(both) -> None:
    theirs, ours = both
    met: list[str] = []
    expected: list[str] = []
    theirs.visititems(lambda name, _: expected.append(name))
    assert ours.visititems(lambda name, _: met.append(name)) is None
    assert sorted(met) == sorted(expected)
    assert ours.visititems(lambda name, found: name if found.name.endswith("sst") else None) == "ocean/sst"


def test_writing_says_that_it_cannot_be(both) -> None:
    _, ours = both
    with pytest.raises(TypeError, match="read-only"):
        ours["ocean/sst"][0] = 1
    with pytest.raises(TypeError, match=re.escape("does not write archives")):
        ours["new"] = 1


def test_a_wrong_name_says_what_there_is(both) -> None:
    _, ours = both
    with pytest.raises(KeyError, match="did you mean 'sst'"):
        ours["ocean/sat"]
    with pytest.raises(KeyError, match="there are 'depth', 'gone', 'ocean'"):
        ours["temperature"]


def test_a_store_that_is_one_array_says_what_its_path_is(tmp_path: Path, both) -> None:
    zarr.create_array(tmp_path / "a.zarr", shape=(3,), dtype="i4")[:] = [1, 2, 3]
    with hyperslab.open(tmp_path / "a.zarr") as store:
        assert list(store) == [""]
        assert "" in store
        assert "''" in repr(store)
        with pytest.raises(TypeError, match="the store is one array, whose path is ''"):
            store[...]
        assert store[""][...].tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="use the path of a group or array"):
        both[1][...]


def test_what_is_no_archive_is_named(tmp_path) -> None:
    other, empty = tmp_path / "a.txt", tmp_path / "empty.h5"
    other.write_text("hello")
    empty.touch()
    for path in (other, empty):
        with pytest.raises(Unsupported, match=rf"{path.name}.*HDF5, NetCDF, FITS or HDF4"):
            hyperslab.open(path)
    with pytest.raises(Unsupported, match="folder without Zarr metadata"):
        hyperslab.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        hyperslab.open(tmp_path / "none.h5")


def test_a_cut_off_file_says_so(tmp_path) -> None:
    for libver in ("earliest", "latest"):
        path = tmp_path / f"{libver}.h5"
        with h5py.File(path, "w", libver=libver, userblock_size=512) as file:
            file["a"] = np.zeros(1000)
        with hyperslab.open(path) as file:
            assert file.lost_nbytes == 0
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(OSError, match="truncated file"):
            h5py.File(path)
        with hyperslab.open(path) as file:
            assert file.lost_nbytes == 100
            with pytest.raises(DamagedFile):
                file["a"][:]


def test_chunk_counts_and_a_single_chunk(tmp_path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["one"] = np.zeros((4, 4))
        file.create_dataset("single", data=np.zeros((4, 4)), chunks=(4, 4))
        sparse = file.create_dataset("sparse", (8, 4), "f4", chunks=(2, 4))
        sparse[:2] = 1
        file["null"] = h5py.Empty("f8")
    with hyperslab.open(path) as file, h5py.File(path) as theirs:
        for name in ("one", "single", "sparse"):
            assert file[name].chunks == theirs[name].chunks
        assert (file["sparse"].chunk_count, file["sparse"].stored_chunk_count) == (4, 1)
        assert (file["one"].chunk_count, file["one"].stored_chunk_count) == (1, 1)
        assert (file["null"].is_null, file["one"].is_null) == (True, False)


def test_external_files_shorter_than_their_slot_and_missing(tmp_path: Path) -> None:
    path, raw = tmp_path / "a.h5", tmp_path / "a.raw"
    before = Path.cwd()
    os.chdir(tmp_path)  # h5py looks for external files here
    try:
        with h5py.File(path, "w") as file:
            slots = [("a.raw", 0, 40), ("b.raw", 0, h5py.h5f.UNLIMITED)]
            made = file.create_dataset("a", (5, 4), "i4", external=slots, fillvalue=7)
            made[...] = np.arange(20).reshape(5, 4)
        for length in (40, 22, 3, 0):
            raw.write_bytes(raw.read_bytes()[:length])
            with h5py.File(path) as theirs, hyperslab.open(path) as ours:
                for key in (np.s_[:], np.s_[1:4, ::2], np.s_[2, 1], np.s_[:, 3]):
                    np.testing.assert_array_equal(ours["a"][key], theirs["a"][key])
        raw.unlink()
        with hyperslab.open(path) as ours, pytest.raises(hyperslab.errors.ReadError, match=r"a\.raw"):
            ours["a"][:]
    finally:
        os.chdir(before)


def test_netcdf4_keeps_its_own_attributes_to_itself(tmp_path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as made:
        made.title = "x"
        made.createDimension("y", 3)
        made.createDimension("x", None)
        for name, dimensions in (("y", "y"), ("sst", ("y", "x"))):
            variable = made.createVariable(name, "f4", dimensions, fill_value=-1.0)
            variable.units = "m"
        made.createVariable("unfilled", "i4", ("y",))
        made["sst"][:1, :2] = 4
    with netcdf.Dataset(path) as theirs, hyperslab.open(path) as ours:
        theirs.set_auto_mask(False)
        assert list(ours.attrs) == theirs.ncattrs()
        for name, variable in theirs.variables.items():
            assert list(ours[name].attrs) == variable.ncattrs()
            np.testing.assert_array_equal(ours[name][...], variable[...])
        assert ours["sst"].fill_value == -1


def test_plain_hdf5_keeps_all_its_attributes(tmp_path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        file["x"].make_scale("x")
        file["a"] = np.arange(3)
        file["a"].dims[0].attach_scale(file["x"])
    with h5py.File(path) as theirs, hyperslab.open(path) as ours:
        for name in theirs:
            assert sorted(ours[name].attrs) == sorted(theirs[name].attrs)


def test_verify_reads_attributes_and_sees_that_a_file_was_cut(tmp_path) -> None:
    from hyperslab.cli.verify import verified

    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"] = 1
        file["a"].attrs["text"] = ["some", "text"]
        file["g/b"] = np.zeros(1000)
    place = path.read_bytes().index(b"GCOL")
    with path.open("r+b") as raw:
        raw.truncate(path.stat().st_size - 8)
        raw.seek(place)
        raw.write(b"NONE")
    with hyperslab.open(path) as root:
        found = {one.name: one for one in verified(root, lambda *_: None)}
    assert {name: one.status for name, one in found.items()} == {
        "(the file)": "damaged", "/a": "damaged", "/g/b": "ok",
    }  # fmt: skip
    assert "8 bytes shorter" in found["(the file)"].messages[0]
    assert "global heap" in found["/a"].messages[0]


def test_a_group_with_committed_datatypes_is_a_mapping(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "a.nc", "w") as file:  # each type becomes a name in the group
        cloud = file.createEnumType("u1", "cloud_t", {"clear": 0, "cloudy": 1})
        file.createCompoundType(np.dtype("i4,f8"), "pair_t")
        file.createVLType("i4", "list_t")
        file.createDimension("x", 5)
        file.createVariable("cloud", cloud, ("x",))[:] = [0, 1, 0, 1, 0]
        file.createVariable("n", "f4", ("x",))[:] = np.arange(5)
        file.createGroup("g")
    with h5py.File(tmp_path / "a.nc", "r+") as file:
        file["nowhere"] = h5py.SoftLink("/missing")
    with hyperslab.open(tmp_path / "a.nc") as ours:
        assert {"cloud_t", "pair_t", "list_t", "nowhere"} < set(ours)  # the names, as in h5py
        assert len(ours) == len(list(ours.keys())) == 8
        held = ["x", "cloud", "n", "g"]
        assert [name for name, _ in ours.items()] == held
        assert [node.name for node in ours.values()] == [f"/{name}" for name in held]
        assert len(ours.items()) == len(ours.values()) == 4
        np.testing.assert_array_equal(ours.get("n")[...], np.arange(5))
        for name in ("cloud_t", "nowhere", "neither", "g/neither"):
            assert ours.get(name) is None
            assert ours.get(name, "none") == "none"
        with pytest.raises(Unsupported, match=r"'/cloud_t' in .*a committed datatype"):
            ours["cloud_t"]
