"""Which versions changed which chunks, from the mappings alone; and the drawing of versions with their parents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from draws import few
from hyperslab.cli.versions.blame import map_rows
from hyperslab.cli.versions.graph import drawn
from hyperslab.errors import DamagedFile, UsageError
from hyperslab.report.blame_map import BlameMap, colour, draw_blame


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """v1; v2 on main; s1 on side, merged into main as m; t1 by versioned-hdf5."""
    made = tmp_path / "survey.h5"
    with hs.VersionedFile(made, "w") as file:
        with file.stage_version("v1", author="Ada") as version:
            version.create_dataset("g/x", data=np.arange(100), chunks=(10,))
        with file.stage_version("s1", branch="side", author="Bo", message="gauge") as version:
            version["g/x"][5] = -1
            version["g/x"][95] = -1
        with file.stage_version("v2") as version:
            version["g/x"][15] = -2
            version["g/x"][97] = -2
        file.merge("side", name="m")
    with h5py.File(made, "r+") as h5, VersionedHDF5File(h5).stage_version("t1") as version:
        version["g/x"].resize((110,))
        version["g/x"][25] = -3
        version["g/x"][105] = -3
    return made


def test_each_chunk_is_of_the_version_that_last_changed_it(path: Path) -> None:
    with hs.VersionedFile(path) as file:
        blame = file.blame("g/x")
        named = [blame.changes[number].name for number in blame.numbers]
        assert named == ["s1", "v2", "t1", "v1", "v1", "v1", "v1", "v1", "v1", "m", "t1"]
        assert [(one.name, one.chunk_count) for one in blame.changes] == [
            ("v1", 6), ("s1", 1), ("v2", 1), ("m", 1), ("t1", 2),
        ]  # fmt: skip
        assert (blame.at(7).author, blame.at(7).message, blame.at(25).author) == ("Bo", "gauge", None)
        some = file.blame("/g/x", np.s_[12:40:20], "side")
        assert some.indices.tolist() == [[1], [3]]
        assert [one.name for one in some.changes] == ["v1"]
        with pytest.raises(IndexError, match="none of the chunks"):
            some.at(0)
        assert file.blame("g/x", [3, 99], "m").indices.tolist() == [[0], [9]]
        assert file.blame("g/x", np.s_[0:0]).changes == ()
        with pytest.raises(KeyError, match="no array 'y'"):
            file.blame("y")
        with pytest.raises(IndexError):
            file.blame("g/x", 200)


def test_history_has_every_version_that_changed_a_chunk(path: Path) -> None:
    with hs.VersionedFile(path) as file:
        assert [one.name for one in file.history("g/x")] == ["t1", "m", "v2", "s1", "v1"]
        assert [one.name for one in file.history("g/x", 99)] == ["m", "v2", "s1", "v1"]
        assert [(one.name, one.chunk_count) for one in file.history("g/x", np.s_[:20])] == [
            ("v2", 1), ("s1", 1), ("v1", 2),
        ]  # fmt: skip
        assert [one.name for one in file.history("g/x", 105)] == ["t1"]


def test_damage_is_no_answer(path: Path) -> None:
    with h5py.File(path, "r+") as h5:
        h5["_version_data/versions/v1"].attrs["prev_version"] = "t1"
    with hs.VersionedFile(path) as file:
        with pytest.raises(DamagedFile, match="circle"):
            file.history("g/x")
        order, parents = file.graph()
        assert len([name for _, name in drawn(order, parents) if name]) == 5


@settings(max_examples=few(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_blame_is_that_of_whole_arrays(tmp_path: Path, data: st.DataObject) -> None:
    """Chunk by chunk: the first parent, then the other one, that has the same chunk; otherwise the version itself."""
    path, whole, parents = tmp_path / "x.h5", dict[str, Any](), dict[str, list[str]]()
    with hs.VersionedFile(path, "w") as file:
        for number in range(data.draw(st.integers(2, 7))):
            name, branch = f"v{number}", data.draw(st.sampled_from(["main", "side"]))
            if number and data.draw(st.booleans()) and len(file.branches) == 2:
                merge = file.merge(data.draw(st.sampled_from(["main", "side"])), branch, conflict="ours", name=name)
                if merge.how == "merged":
                    parents[name] = [str(file.table[name].parent), merge.merged]
                    whole[name] = file[name]["x"][...]
                continue
            with file.stage_version(name, branch=branch) as version:
                if "x" not in version:
                    version.create_dataset("x", data=np.arange(30), chunks=(4,))
                version["x"][data.draw(st.integers(0, 29))] = 1000 + number
                whole[name] = version["x"][...]
            parents[name] = [one] if (one := file.table[name].parent) is not None else []
        for head in file.versions:
            blame = file.blame("x", version=head)
            for index, number in zip(blame.indices[:, 0].tolist(), blame.numbers.tolist(), strict=True):
                assert blame.changes[number].name == blamed(head, slice(4 * index, 4 * index + 4), whole, parents)


@settings(max_examples=few(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_element_is_of_the_version_that_last_changed_it(tmp_path: Path, data: st.DataObject) -> None:
    """Element by element, with versions of both libraries, merges, and arrays that grow and shrink."""
    path, parents = tmp_path / "x.h5", dict[str, list[str]]()
    with hs.VersionedFile(path, "w") as file, file.stage_version("v0") as version:
        change(version, 0, data)
    parents["v0"] = []
    for number in range(1, data.draw(st.integers(2, 6))):
        name, how = f"v{number}", data.draw(st.sampled_from(["main", "side", "merge", "theirs"]))
        if how == "theirs":
            with h5py.File(path, "r+") as h5, VersionedHDF5File(h5).stage_version(name) as version:
                change(version, number, data)
        with hs.VersionedFile(path, "r+") as file:
            if how == "merge" and "side" in file.branches:
                file.merge("side", "main", conflict="theirs", name=name)
            elif how in ("main", "side"):
                with file.stage_version(name, branch=how) as version:
                    change(version, number, data)
            if name in file:
                parents[name] = [one for one in (file.table[name].parent, file.merged_into(name)) if one is not None]
    with hs.VersionedFile(path) as file:
        whole = {name: file[name]["x"][...] for name in file.versions}
        for head in file.versions:
            blame = file.blame_elements("x", np.s_[:, 1:], head)
            assert sum(change.element_count or 0 for change in blame.changes) == blame.numbers.size
            for index in np.ndindex(blame.numbers.shape):
                assert blame.at(*index).name == of_element(head, (index[0], index[1] + 1), whole, parents)


def change(version: Any, number: int, data: st.DataObject) -> None:
    """Change elements, and sometimes the shape."""
    if "x" not in version:
        version.create_dataset("x", data=np.zeros((6, 5), "i4"), chunks=(4, 2))
    if data.draw(st.integers(0, 5)) == 0:
        version["x"].resize((data.draw(st.integers(1, 8)), 5))
    for _ in range(2):
        row = data.draw(st.integers(0, version["x"].shape[0] - 1))
        version["x"][row, data.draw(st.integers(0, 4))] = number % 3


def of_element(name: str, index: tuple[int, int], whole: dict[str, Any], parents: dict[str, list[str]]) -> str:
    """The first parent, then the other one, that has the same chunk; then that has the same element."""
    own = whole[name]
    part = tuple(
        slice(at // chunk * chunk, at // chunk * chunk + chunk) for at, chunk in zip(index, (4, 2), strict=True)
    )
    for parent in parents[name]:
        if whole[parent][part].shape == own[part].shape and (whole[parent][part] == own[part]).all():
            return of_element(parent, index, whole, parents)
    for parent in parents[name]:
        if index[0] < whole[parent].shape[0] and whole[parent][index] == own[index]:
            return of_element(parent, index, whole, parents)
    return name


def test_elements_are_blamed_without_reading_what_did_not_change(path: Path) -> None:
    with hs.VersionedFile(path) as file:
        blame = file.blame_elements("g/x", np.s_[90:110])
        assert [blame.at(index).name for index in (0, 5, 7, 9, 15, 10)] == ["v1", "s1", "v2", "v1", "t1", "t1"]
        assert [(one.name, one.chunk_count, one.element_count) for one in blame.changes] == [
            ("v1", 1, 8), ("s1", 1, 1), ("v2", 1, 1), ("t1", 1, 10),
        ]  # fmt: skip
        assert file.blame_elements("g/x", 95).at().author == "Bo"
        assert file.blame_elements("g/x", np.s_[0:0]).changes == ()
        with pytest.raises(IndexError, match="not one element"):
            file.blame_elements("g/x", np.s_[:10]).at()


def test_a_map_has_a_colour_for_each_version(path: Path, tmp_path: Path) -> None:
    with hs.VersionedFile(path) as file:
        chunks, elements = file.blame("g/x", np.s_[10:100]), file.blame_elements("g/x")
    drawn = BlameMap.of(chunks)
    assert (drawn.numbers.tolist(), drawn.cells(5, 3).tolist()) == ([chunks.numbers.tolist()], [[3, 0, 2]])
    [row] = map_rows(drawn, 80)
    assert (len(row), len({str(span.style) for span in row.spans})) == (9, len(chunks.changes))
    for suffix in (".png", ".svg", ".html"):
        draw_blame(BlameMap.of(elements), tmp_path / f"map{suffix}")
    page = (tmp_path / "map.html").read_text()
    assert "<svg" in page
    assert "gauge" in page
    assert colour(0) in page
    with pytest.raises(UsageError, match="end it with"):
        draw_blame(drawn, tmp_path / "map.pdf")


def blamed(name: str, part: slice, whole: dict[str, Any], parents: dict[str, list[str]]) -> str:
    for parent in parents[name]:
        if np.array_equal(whole[parent][part], whole[name][part]):
            return blamed(parent, part, whole, parents)
    return name


def test_the_drawing_shows_merges_and_branches() -> None:
    parents = {"e": ["d", "c"], "d": ["b"], "c": ["b"], "b": ["a"], "o": [], "a": []}
    rows = [f"{row} {name or ''}".rstrip() for row, name in drawn(["e", "d", "c", "b", "a", "o"], parents)]
    assert rows == ["● e", "├─╮", "● │ d", "│ ● c", "├─╯", "● b", "● a", "● o"]
    octopus = {"f": ["a"], "g": ["a"], "h": ["a"], "a": []}
    assert [row for row, _ in drawn(["f", "g", "h", "a"], octopus)] == [
        "●", "│ ●", "│ │ ●", "├─╯ │", "├───╯", "●",
    ]  # fmt: skip
