"""Attributes of versions: checked when you set them, and kept with their types while you change other things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.versions import repair

COLOURS = h5py.enum_dtype({"red": 0, "blue": 5}, "i2")
RECORD = np.dtype([("place", "<f8", (3,)), ("name", "S5"), ("mass", ">i4")])
VALUES: dict[str, Any] = {
    "bytes": np.bytes_(b"xyz"),
    "not text": np.bytes_(b"\xff\xe9"),
    "empty": h5py.Empty("f4"),
    "no text": h5py.Empty("S3"),
    "text": "grün",
    "not UTF-8": b"\xff\xe9",
    "words": ["a", "bc"],
    "colour": np.array(5, COLOURS),
    "flag": True,
    "big": np.array([1, 2], ">i2"),
    "record": np.zeros((), RECORD),
    "long": np.longdouble(1.5),
    "complex": 1 + 2j,
    "many": np.array([np.arange(2, dtype="i4"), np.arange(3, dtype="i4")], h5py.vlen_dtype("i4")),
}


def described(holder: Any) -> dict[str, Any]:
    """The attributes as HDF5 has them: type, shape and elements."""
    found = {}
    for name in holder.attrs:
        attribute, value = holder.attrs.get_id(name), holder.attrs[name]
        plain = "null" if isinstance(value, h5py.Empty) else np.asarray(value).tolist()
        found[name] = attribute.get_type().encode(), attribute.shape, repr(plain)
    return {name: one for name, one in found.items() if name not in ("raw_data", "chunks")}


def seen(path: Path, version: str) -> Any:
    with h5py.File(path, locking=False) as file:
        group = file[f"_version_data/versions/{version}"]
        return described(group["g/x"]), described(group["g"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file, file.stage_version("a") as version:
        version.create_dataset("g/x", data=np.arange(10), chunks=(4,)).attrs.update(VALUES)
        version["g"].attrs.update(VALUES)
    return path


def test_types_stay_while_elements_and_other_attributes_change(path: Path) -> None:
    before = seen(path, "a")
    with h5py.File(path) as file:
        assert type(file["_version_data/versions/a/g/x"].attrs["bytes"]) is np.bytes_
        assert isinstance(file["_version_data/versions/a/g/x"].attrs["empty"], h5py.Empty)
    for reopened in (True, False, True):
        with hs.VersionedFile(path, "r+") as file:
            for _ in range(1 if reopened else 2):
                with file.stage_version() as version:
                    version["g/x"][3] += 1
                assert seen(path, file.current_version or "") == before
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("more") as version:
            version["g/x"].attrs["more"] = 1
            version["g"].attrs["more"] = 2
            del version["g/x"].attrs["text"]
            assert "text" not in version["g/x"].attrs
            assert version["g/x"].attrs["words"].tolist() == ["a", "bc"]
        verified = file.verify()
        assert (verified.damages, verified.unproved) == ([], {})
        file.export("more", path.with_name("plain.h5"))
    array, group = seen(path, "more")
    assert array.pop("more")[2] == "1"
    assert group.pop("more")[2] == "2"
    assert (array, group) == ({name: one for name, one in before[0].items() if name != "text"}, before[1])
    with h5py.File(path.with_name("plain.h5")) as file:
        assert described(file["g"]) == seen(path, "more")[1]


def test_versioned_hdf5_reads_them(path: Path) -> None:
    with h5py.File(path) as h5:
        attributes = VersionedHDF5File(h5)["a"]["g/x"].attrs
        assert type(attributes["bytes"]) is np.bytes_
        assert attributes["empty"] == h5py.Empty("f4")


def test_repair_keeps_them(path: Path) -> None:
    assert repair(path, path.with_name("repaired.h5")).is_complete
    for one, other in zip(seen(path.with_name("repaired.h5"), "a"), seen(path, "a"), strict=True):
        assert (
            one.pop("not UTF-8")[1:] == other.pop("not UTF-8")[1:]
        )  # h5py says that it is ASCII; repair, that it is not
        assert one == other


def test_an_array_that_did_not_change_is_recognized_whatever_its_attributes_are(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("b") as version:
            version["g/x"].attrs["text"] = "grün"
            version["g/x"].attrs["many"] = version["g/x"].attrs["many"]
            version["g"].attrs["empty"] = h5py.Empty("f4")
        assert file.diff("a", "b").arrays == {}
    assert seen(path, "b") == seen(path, "a")


REFUSED = [
    ("x", object(), TypeError, "no native HDF5"),
    ("x", None, TypeError, "no native HDF5"),
    ("x", {"a": 1}, TypeError, "no native HDF5"),
    ("x", ["a", 1], TypeError, "No conversion"),
    ("x", np.datetime64("2020-01-01"), TypeError, "No conversion"),
    ("x", "a\0b", ValueError, "NUL"),
    ("x", "a\ud800", ValueError, "surrogates"),
    ("x", np.arange(20_000), ValueError, "too large"),
    ("a\0b", 1, ValueError, "NUL"),
    ("", 1, ValueError, "empty"),
    ("a\ud800", 1, ValueError, "surrogates"),
    (5, 1, TypeError, "not text"),
]


@pytest.mark.parametrize(("name", "value", "kind", "said"), REFUSED)
def test_what_hdf5_cannot_store_is_refused_at_once(path: Path, name: Any, value: Any, kind: Any, said: str) -> None:
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("b") as version:
            for owner, where in (("g/x", "'g/x'"), ("g", "'g'"), (None, "the version")):
                attributes = version.attrs if owner is None else version[owner].attrs
                for assign in (
                    attributes.__setitem__,
                    lambda n, v, a=attributes: a.update({n: v}),
                    attributes.setdefault,
                ):
                    with pytest.raises(kind, match=said) as caught:
                        assign(name, value)
                    assert f"attribute {name!r} of {where}" in caught.value.args[0]
            version["g/x"][0] = -1
        assert file["b"]["g/x"][0] == -1
    assert seen(path, "b") == seen(path, "a")


def test_large_attributes_fit_in_the_newest_layout(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as h5:
        with hs.VersionedFile(h5).stage_version("a") as version:
            version.create_dataset("x", data=[1]).attrs["large"] = np.arange(20_000)
        assert len(h5["_version_data/versions/a/x"].attrs["large"]) == 20_000


NAMES = ["a\0b", "a\ud800", "g/a\0b"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_hdf5_would_cut_off_are_refused(path: Path, name: str) -> None:
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("b") as version:
            for make in (version.create_group, lambda n: version.create_dataset(n, data=[1]), version.require_group):
                with pytest.raises(ValueError, match=r"NUL|surrogates"):
                    make(name)
            with pytest.raises(ValueError, match=r"NUL|surrogates"):
                version[name] = [1]
        if "/" not in name:
            with pytest.raises(ValueError, match=r"NUL|surrogates"), file.stage_version(name):
                pass
        assert list(file["b"]) == ["g"]
        assert file.versions == ["a", "b"]
