"""Merging branches: as a merge of whole NumPy arrays would be, and without reading what only one side changed."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import Trials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from versioned_hdf5 import VersionedHDF5File
from versioned_hdf5 import delete_versions as delete_theirs

import hyperslab as hs
from draws import few
from hyperslab.errors import MergeConflict, UsageError
from hyperslab.versions.stage.staged_chunks import StagedChunks

Arrays = dict[tuple[int, ...], Any]  # the elements of an array by index
FILL = -7


def make(path: Path, data: Any, chunks: tuple[int, ...], **options: Any) -> None:
    with hs.VersionedFile(path, "w") as file, file.stage_version("base") as version:
        version.create_dataset("x", data=data, chunks=chunks, **options)
        version["x"].attrs["units"] = "m"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """`main` at ours, `side` at theirs: both come from base."""
    made = tmp_path / "survey.h5"
    make(made, np.arange(1000.0), (10,))
    with hs.VersionedFile(made, "r+") as file:
        with file.stage_version("theirs", branch="side") as version:
            version["x"][5] = -1
            version["x"][103] = -2
            version["x"].attrs["by"] = "Ada"
            version.create_dataset("g/new", data=np.arange(20), chunks=(5,))
            version["g"].attrs["why"] = "because"
        with file.stage_version("ours") as version:
            version["x"][990] = -3
            version["x"][107] = -4
            version["x"].attrs["units"] = "km"
    return made


def merged_elements(path: Path) -> None:
    with hs.VersionedFile(path) as file:
        expected = np.arange(1000.0)
        expected[[5, 103, 990, 107]] = -1, -2, -3, -4
        np.testing.assert_array_equal(file["main"]["x"][...], expected)
        assert dict(file["main"]["x"].attrs.items()).items() >= {"units": "km", "by": "Ada"}.items()
        np.testing.assert_array_equal(file["main"]["g/new"][...], np.arange(20))
        assert file["main"]["g"].attrs["why"] == "because"
        assert file.verify().is_whole


def test_a_merge_has_what_both_sides_changed(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        merge = file.merge("side", "main", name="both", message="Ada's gauge", author="Bo")
        assert (merge.version, merge.merged, merge.base, merge.how) == ("both", "theirs", "base", "merged")
        assert merge.conflicts == ()
        assert (file.table["both"].parent, file.current_version) == ("ours", "both")
        assert file.branches["side"].version == "theirs"
        assert file["both"].attrs["message"] == "Ada's gauge"
        assert file.merge("side").how == "nothing"
        with file.stage_version("later", branch="side") as version:
            version["x"][6] = -6
        assert file.merge("side", name="again").base == "theirs"  # the second parent counts
        assert file["again"]["x"][6] == -6
        with file.stage_version("back", branch="main") as version:
            version["x"][6] = 6
        assert (file.merge("main", "side").how, file.branches["side"].version) == ("moved", "back")
    with h5py.File(path) as h5:
        theirs = VersionedHDF5File(h5)["both"]["x"][()]
        assert (theirs[5], theirs[103], theirs[990], theirs[107]) == (-1, -2, -3, -4)


def test_what_only_one_side_changed_is_neither_read_nor_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = StagedChunks.of_slots

    def counted(self: StagedChunks, slots: Any) -> Any:
        read.extend(slot for slot in slots.tolist() if slot >= 0)
        return original(self, slots)

    with h5py.File(path) as h5:
        before = h5["_version_data/x/raw_data"].shape[0]
    monkeypatch.setattr(StagedChunks, "of_slots", counted)
    with hs.VersionedFile(path, "r+") as file:
        file.merge("side")
    assert len(read) == 3  # of the one chunk that both changed
    with h5py.File(path) as h5:
        assert h5["_version_data/x/raw_data"].shape[0] == before + 10
    merged_elements(path)


def test_conflicts_are_named_and_nothing_is_merged(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("clash") as version:
            version["x"][103:105] = 50
            version["x"][5:7] = -1  # the same value in 5
            version["x"].attrs["by"] = "Bo"
        before = path.read_bytes()
        with pytest.raises(MergeConflict, match=r"attribute 'by' of x; x: 1 elements \[103:104\]") as caught:
            file.merge("side")
        [attribute, elements] = caught.value.conflicts
        assert (attribute.kind, attribute.name) == ("attribute", "by")
        assert (elements.kind, elements.count, elements.boxes.tolist()) == ("elements", 1, [[[103, 104]]])
        assert path.read_bytes() == before
        with pytest.raises(MergeConflict, match="attribute 'by'"):
            file.merge("side", conflict=lambda base, ours, theirs: ours)
        with pytest.raises(ValueError, match="settles no conflict"):
            file.merge("side", conflict="mine")  # type: ignore[arg-type]
        with pytest.raises(KeyError):
            file.merge("nobody")
        with pytest.raises(ValueError, match="no branch"):
            file.merge("side", "mian")
        assert len(file.merge("side", conflict="theirs", name="t").conflicts) == 2
        assert (file["t"]["x"][103], file["t"]["x"][104], file["t"]["x"].attrs["by"]) == (-2, 50, "Ada")


def test_a_function_settles_conflicts(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("clash") as version:
            version["x"][103] = 50
        with pytest.raises(UsageError, match="returned the shape"):
            file.merge("side", conflict=lambda base, ours, theirs: np.zeros(7))
        merge = file.merge("side", conflict=lambda base, ours, theirs: base + ours + theirs)
        assert file[merge.version]["x"][103] == 103 + 50 - 2
        assert file[merge.version]["x"][107] == -4


@pytest.mark.parametrize("conflict", ["ours", "theirs", "raise"])
def test_names_and_deletions_are_merged_as_values(tmp_path: Path, conflict: Any) -> None:
    path = tmp_path / "names.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("base") as version:
            for name in ("kept", "gone", "gone2", "g/inner", "h/inner", "clash"):
                version.create_dataset(name, data=np.arange(10), chunks=(4,))
        with file.stage_version("theirs", branch="side") as version:
            del version["gone"]
            del version["g"]
            del version["h"]
            if conflict != "raise":
                del version["clash"]
            version.create_dataset("added", data=np.arange(3), chunks=(4,))
            version.create_group("empty")
        with file.stage_version("ours") as version:
            del version["gone2"]
            version["clash"][0] = 9
            version.create_dataset("h/mine", data=np.arange(3), chunks=(4,))
        file.merge("side", name="m", conflict=conflict)
        names = {"kept", "added", "empty", "h", "clash"} - ({"clash"} if conflict == "theirs" else set())
        assert set(file["m"]) == names
        assert set(file["m"]["h"]) == {"mine"}
        assert file.verify().is_whole


def test_shapes_that_contradict_are_a_conflict(tmp_path: Path) -> None:
    path = tmp_path / "shapes.h5"
    make(path, np.arange(100), (10,))
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("theirs", branch="side") as version:
            version["x"].resize((50,))
        with file.stage_version("ours") as version:
            version["x"][70] = 1
        with pytest.raises(MergeConflict, match="its shape"):
            file.merge("side")
        file.create_branch("copy")
        file.merge("side", "copy", conflict="theirs", name="t")
        file.merge("side", conflict="ours", name="o")
        assert (file["t"]["x"].shape, file["o"]["x"].shape, file["o"]["x"][70]) == ((50,), (100,), 1)
        assert file.verify().is_whole


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "text": (np.array(["a", "é", ""] * 4, object), "ours", "theirs"),
    "bytes": (np.array([b"a", b"bc"] * 6, "S3"), b"o", b"t"),
    "records": (np.zeros(12, [("a", "i2"), ("b", "f8")]), (1, 2.5), (3, 4.5)),
    "booleans": (np.zeros(12, bool), True, True),
    "floats": (np.full(12, np.nan, "f4"), 1.0, -0.0),
    "big-endian": (np.arange(12, dtype=">i4"), 77, 78),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_elements_are_merged(tmp_path: Path, kind: str) -> None:
    data, own, other = KINDS[kind]
    path = tmp_path / "kinds.h5"
    make(path, data, (5,), **({"dtype": h5py.string_dtype()} if data.dtype == object else {}))
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("theirs", branch="side") as version:
            version["x"][1] = other
            version["x"][11] = other
            version["x"].resize((13,))
        with file.stage_version("ours") as version:
            version["x"][2] = own
        assert file.merge("side", name="m").conflicts == ()
        expected_now = data.copy()
        expected_now[[1, 11]], expected_now[2] = other, own
        np.testing.assert_array_equal(file["m"]["x"][:12], expected_now)
        np.testing.assert_array_equal(file["m"]["x"][12:], file["theirs"]["x"][12:])
        assert file.verify().is_whole


def test_versions_without_a_common_ancestor(tmp_path: Path) -> None:
    path = tmp_path / "orphans.h5"
    make(path, np.arange(10), (4,))
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("o", branch="orphan", prev_version="") as version:
            version.create_dataset("x", data=np.arange(10), chunks=(4,))
            version.create_dataset("y", data=["a", "b"], dtype=h5py.string_dtype(), chunks=(4,))
        merge = file.merge("orphan", conflict="ours")
        assert merge.base is None
        assert file["main"]["y"][...].tolist() == ["a", "b"]


def test_a_merge_after_versioned_hdf5_worked_on_both_branches(path: Path) -> None:
    with h5py.File(path, "r+") as h5, VersionedHDF5File(h5).stage_version("c1") as version:
        version["x"][300] = 1
    with hs.VersionedFile(path, "r+") as file:
        file.checkout("side")
    with h5py.File(path, "r+") as h5:
        with VersionedHDF5File(h5).stage_version("c2") as version:
            version["x"][305] = 2
        delete_theirs(h5, ["base", "theirs"])
    with hs.VersionedFile(path, "r+") as file:
        assert {name: branch.version for name, branch in file.branches.items()} == {"main": "c1", "side": "c2"}
        merge = file.merge("side", "main", conflict="ours", name="m")
        assert merge.base is None  # versioned-hdf5 deleted it
        assert file["m"]["x"][300] == 1
        assert file.verify().is_whole
        file.delete_versions("c2")
        file.repack()
        assert file._seen.refs.second_parent("m", file.table) is None
        assert file.merge("m", "main").how == "nothing"


# ---------------------------------------------------------------------------------- as a merge of whole NumPy arrays


def by_index(array: Any) -> Arrays:
    return {index: array[index] for index in np.ndindex(array.shape)}


def expected(base: Any, ours: Any, theirs: Any, conflict: Any) -> tuple[Any, bool, int]:
    """The merged array; whether the shapes contradict; and how many elements clash. Element by element, in Python."""
    shape, contradicts = [], False
    for old, own, other in zip(base.shape, ours.shape, theirs.shape, strict=True):
        contradicts |= len({old, own, other}) == 3
        shape.append(other if own == old else own)
    b, o, t = by_index(base), by_index(ours), by_index(theirs)
    for side in (o, t):
        for index, value in side.items():
            outside = any(at >= length for at, length in zip(index, shape, strict=True))
            contradicts |= outside and b.get(index) != value
    if contradicts:
        shape = list((theirs if conflict == "theirs" else ours).shape)
    made, clashes = np.full(shape, FILL, base.dtype), 0
    for index in itertools.product(*map(range, shape)):
        old, own, other = b.get(index), o.get(index), t.get(index)
        if own is None or other is None:
            made[index] = next((one for one in (own, other) if one is not None), FILL)
        elif own == other or old == other:
            made[index] = own
        elif old == own:
            made[index] = other
        else:
            clashes += 1
            made[index] = other if conflict == "theirs" else own
            if callable(conflict):
                made[index] = conflict(FILL if old is None else old, own, other)
    return made, contradicts, clashes


@st.composite
def edits(draw: st.DrawFn, ndim: int) -> list[tuple[str, Any]]:
    """Resizes and writes."""
    made: list[tuple[str, Any]] = []
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.integers(0, 2)) == 0:
            made.append(("resize", tuple(draw(st.integers(1, 12)) for _ in range(ndim))))
        else:
            starts = [draw(st.integers(0, 10)) for _ in range(ndim)]
            box = tuple(slice(start, start + draw(st.integers(1, 4))) for start in starts)
            made.append(("write", (box, draw(st.sampled_from([FILL, 1, 2, 3])))))
    return made


def apply(array: Any, changes: list[tuple[str, Any]]) -> None:
    for kind, what in changes:
        if kind == "resize":
            array.resize(what)
        elif math.prod(array[what[0]].shape):
            array[what[0]] = what[1]


class Whole:
    """A NumPy array that is resized as HDF5's are."""

    def __init__(self, data: Any) -> None:
        self.data = data.copy()

    def resize(self, shape: tuple[int, ...]) -> None:
        made = np.full(shape, FILL, self.data.dtype)
        kept = tuple(slice(0, min(pair)) for pair in zip(shape, self.data.shape, strict=True))
        made[kept] = self.data[kept]
        self.data = made

    def __getitem__(self, key: Any) -> Any:
        return self.data[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[key] = value


POLICIES = st.sampled_from(["raise", "ours", "theirs", lambda base, ours, theirs: base + 10 * ours + 100 * theirs])


@settings(max_examples=few(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ndim=st.integers(1, 2), conflict=POLICIES, by_theirs=st.booleans())
def test_a_merge_equals_one_of_whole_arrays(
    tmp_path: Path, data: st.DataObject, ndim: int, conflict: Any, by_theirs: bool
) -> None:
    shape = tuple(data.draw(st.integers(1, 12)) for _ in range(ndim))
    chunks = tuple(data.draw(st.integers(1, 5)) for _ in range(ndim))
    start = np.arange(math.prod(shape), dtype="i8").reshape(shape) % 5
    ours, theirs = data.draw(edits(ndim)), data.draw(edits(ndim))
    path = tmp_path / "whole.h5"
    make(path, start, chunks, fillvalue=FILL)
    wholes = [Whole(start), Whole(start), Whole(start)]
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("theirs", branch="side") as version:
            apply(version["x"], theirs)
        if not by_theirs:
            with file.stage_version("ours") as version:
                apply(version["x"], ours)
    if by_theirs:
        with h5py.File(path, "r+") as h5, VersionedHDF5File(h5).stage_version("ours") as version:
            apply(version["x"], ours)
    apply(wholes[1], ours)
    apply(wholes[2], theirs)
    made, contradicts, clashes = expected(*(one.data for one in wholes), conflict)
    fails = (conflict == "raise" and (contradicts or clashes)) or (callable(conflict) and contradicts)
    with hs.VersionedFile(path, "r+") as file:
        if fails:
            with pytest.raises(MergeConflict) as caught:
                file.merge("side", name="m") if conflict == "raise" else file.merge("side", name="m", conflict=conflict)
            assert ("shape" in {one.kind for one in caught.value.conflicts}) == contradicts
            return
        merge = file.merge("side", name="m", conflict=conflict)
        assert sum(one.count for one in merge.conflicts) == clashes
        assert ("shape" in {one.kind for one in merge.conflicts}) == contradicts
        np.testing.assert_array_equal(file["m"]["x"][...], made)
        for name, whole in zip(("base", "ours", "theirs"), wholes, strict=True):
            np.testing.assert_array_equal(file[name]["x"][...], whole.data)
        assert file.verify().is_whole
    with h5py.File(path) as h5:
        np.testing.assert_array_equal(VersionedHDF5File(h5)["m"]["x"][()], made)


# ----------------------------------------------------------------------------------------------------------- kills


def merge_work(path: Path) -> Any:
    with hs.VersionedFile(path, "r+") as file:
        file.merge("side", "main", name="both", message="m")
        yield 1
        file.merge("main", "side")
        yield 2


def check_merge(path: Path, returned: int) -> None:
    with hs.VersionedFile(path) as file:
        heads = {name: branch.version for name, branch in file.branches.items()}
        states = [("ours", "theirs"), ("both", "theirs"), ("both", "both")]
        assert (heads["main"], heads["side"]) in states[returned : returned + 2]
        assert file.current_version == heads["main"]
    with hs.VersionedFile(path, "r+") as file:
        file.merge("side", "main", name="both" if "both" not in file else None)
        assert file._seen.refs.second_parent("both", file.table) == "theirs"
    merged_elements(path)


@pytest.fixture
def trials(path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(path, merge_work, monkeypatch, returned=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_merges_and_kills(trials: Trials) -> None:
    for returned in trials.kills(16):
        check_merge(trials.path, returned)


@pytest.mark.slow
@pytest.mark.parametrize("number", [5, 28])  # EIO, ENOSPC
def test_merges_and_failing_disks(trials: Trials, number: int) -> None:
    for returned in trials.failures(number, stays=bool(number % 2), most=6):
        check_merge(trials.path, returned)


@pytest.mark.slow
def test_merges_and_power_cuts(trials: Trials) -> None:
    for returned in trials.power_cuts(8, 6):
        check_merge(trials.path, returned)
