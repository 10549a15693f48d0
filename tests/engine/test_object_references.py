"""References to objects and regions, as paths; sequences within sequences: all against h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs


@pytest.fixture(params=[0, 1024], ids=["", "user block"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with references wherever they can be."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=request.param) as file:
        x = file.create_dataset("g/deep/x", data=np.arange(12).reshape(3, 4))
        file["g/type"] = np.dtype("i4")
        gone = file.create_dataset("gone", data=1)
        references = np.empty((2, 3), h5py.ref_dtype)
        references[0] = [x.ref, file.ref, gone.ref]
        references[1] = [h5py.Reference(), file["g"].ref, file["g/type"].ref]
        file.create_dataset("objects", data=references, dtype=h5py.ref_dtype, chunks=(1, 2), compression="gzip")
        regions = file.create_dataset("regions", (2,), h5py.regionref_dtype)
        regions[0] = x.regionref[1:, ::2]
        mixed = np.empty(2, [("n", "i4"), ("object", h5py.ref_dtype), ("region", h5py.regionref_dtype)])
        mixed[0], mixed[1] = (1, x.ref, x.regionref[0]), (2, h5py.Reference(), h5py.RegionReference())
        file["mixed"] = mixed
        file.attrs["object"] = x.ref
        file.attrs["region"] = x.regionref[:]
        file.attrs.create("objects", references, dtype=h5py.ref_dtype)
        ragged = np.empty(2, object)
        ragged[0] = np.array([x.ref, file["g"].ref], h5py.ref_dtype)
        ragged[1] = np.array([], h5py.ref_dtype)
        file.create_dataset("ragged", data=ragged, dtype=h5py.vlen_dtype(h5py.ref_dtype))
        file["g/scale"] = np.arange(4)
        file["g/scale"].make_scale("s")
        x.dims[1].attach_scale(file["g/scale"])
        del file["gone"]
    return path


def paths(file: h5py.File, value: Any) -> Any:
    """The paths of what h5py's references refer to."""
    if isinstance(value, h5py.Reference | h5py.RegionReference):
        try:
            return file[value].name if value else None
        except KeyError:  # it was deleted
            return None
    if isinstance(value, np.void):
        return [paths(file, value[name]) for name in value.dtype.names]
    if isinstance(value, np.ndarray):
        return [paths(file, one) for one in value]
    return value


def plain(value: Any) -> Any:
    """The same of ours."""
    if isinstance(value, np.void):
        return [plain(value[name]) for name in value.dtype.names]
    return [plain(one) for one in value] if isinstance(value, np.ndarray) else value


def test_references_are_the_paths_of_what_h5py_finds(written: Path) -> None:
    root = hs.open(written)
    with h5py.File(written) as file:
        for name in ("objects", "regions", "mixed", "ragged"):
            assert root[name].via == "hyperslab"
            assert plain(root[name][...]) == paths(file, file[name][...]), name
        for name in ("object", "region", "objects"):
            assert plain(root.attrs[name]) == paths(file, file.attrs[name])
        for name, owner in (("DIMENSION_LIST", "g/deep/x"), ("REFERENCE_LIST", "g/scale")):
            assert plain(root[owner].attrs[name]) == paths(file, file[owner].attrs[name])
    assert root["objects"].dtype == object
    assert root["objects"][0].tolist() == ["/g/deep/x", "/", None]
    np.testing.assert_array_equal(root[root.attrs["object"]][...], np.arange(12).reshape(3, 4))
    assert root["objects"][1, 1] == "/g"
    assert root["mixed"]["region"].tolist() == ["/g/deep/x", None]


def test_sequences_within_sequences(tmp_path: Path) -> None:
    """Of text, and of compounds with text: what h5py can write of them."""
    texts = h5py.vlen_dtype(h5py.string_dtype())
    compound = np.dtype([("n", "i4"), ("text", h5py.string_dtype())])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("texts", (3,), texts)[0] = np.array(["a", "bcd", "", "ä" * 300], object)
        file["texts"][2] = np.array(["e"], object)
        array = file.create_dataset("compounds", (2,), h5py.vlen_dtype(compound), chunks=(1,), compression="gzip")
        array[1] = np.array([(1, "one"), (2, "zwei")], compound)
        read = {"texts": file["texts"][...], "compounds": array[1]}  # h5py cannot read an empty one
    root = hs.open(tmp_path / "a.h5")
    assert [list(one) for one in root["texts"][:]] == [[text.decode() for text in one] for one in read["texts"]]
    ours = [[tuple(pair) for pair in one] for one in root["compounds"][:]]
    assert ours == [[], [(n, text.decode()) for n, text in read["compounds"]]]
    assert len(ours[1]) == 2
    assert root["texts"][1].shape == (0,)
    assert {array.via for array in root.arrays.values()} == {"hyperslab"}
