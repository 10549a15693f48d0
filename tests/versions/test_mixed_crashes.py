"""Kills and power cuts, after which others use the file before hyperslab does: versioned-hdf5 and h5py write to it; it
is moved, copied, linked, restored from a backup; or another file takes its name. Nothing is lost, and nothing is wrong.

`HYPERSLAB_CRASHES=all` tries 3,000 points; otherwise a sample.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL, Trials
from test_crashes import commit, committed, state_of, text, work
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import HyperslabError, MissingJournal

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
THEIRS = 3


class Expected:
    """What must be in a file: our versions whose commits had returned, those of others, and their attribute.

    If the power was cut in the last step of a commit, and others wrote before it was finished, its version exists but
    need not be the current one.
    """

    def __init__(self, returned: int, *, without_power: bool = False) -> None:
        self.returned, self.without_power = returned, without_power
        self.theirs = 0
        self.note: str | None = None


def theirs_state(number: int) -> np.ndarray[Any, Any]:
    return np.arange(500.0) * (number + 2) + 0.5


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal")


def theirs_commits(path: Path, expected: Expected) -> None:
    """Commit with versioned-hdf5, which knows nothing of journals."""
    with h5py.File(path, "r+") as h5:
        file = VersionedHDF5File(h5)
        for number in range(THEIRS):
            with file.stage_version(f"theirs{number}") as version:
                version["x"][...] = theirs_state(number)
            expected.theirs = number + 1


def theirs_notes(path: Path, expected: Expected) -> None:
    """Write an attribute and an array with h5py."""
    with h5py.File(path, "r+") as h5:
        h5.attrs["note"] = expected.note = "kept"
        h5["array of theirs"] = np.arange(1000)


def assert_versions(path: Path, expected: Expected, *, is_finished: bool = False) -> None:
    """What hyperslab and versioned-hdf5 read is right, and nothing is missing."""
    with hs.VersionedFile(path) as file:
        ours = [name for name in file.versions if name.startswith("v")]
        assert expected.returned <= len(ours) <= expected.returned + 1, f"{expected.returned} returned: {file.versions}"
        assert ours == [f"v{number}" for number in range(len(ours))]
        for name in ours:
            for path_of, data in state_of(int(name[1:])).items():
                np.testing.assert_array_equal(text(file[name][path_of][...]), text(data), f"{name} {path_of}")
        for number in range(expected.theirs):
            np.testing.assert_array_equal(file[f"theirs{number}"]["x"][...], theirs_state(number))
        versions = file.versions
        last = {f"theirs{expected.theirs - 1}"} if expected.theirs else {ours[-1]}
        if not is_finished or (expected.without_power and expected.note is not None and not expected.theirs):
            last |= {ours[expected.returned - 1]}
        assert file.current_version in last
    with h5py.File(path) as h5:
        theirs = VersionedHDF5File(h5)
        for name in versions:
            data = state_of(int(name[1:]))["x"] if name.startswith("v") else theirs_state(int(name[6:]))
            np.testing.assert_array_equal(theirs[name]["x"][()], data)
        if expected.note is not None:
            assert h5.attrs["note"] == expected.note
            np.testing.assert_array_equal(h5["array of theirs"][()], np.arange(1000))


def is_right(path: Path, expected: Expected) -> bool:
    """Whether everything exists. If not, opening must be refused because of the journal, and no byte may change."""
    before = path.read_bytes()
    refused = []
    for mode in ("r", "r+"):
        said = ""
        try:
            hs.VersionedFile(path, mode).close()  # type: ignore[arg-type]
        except HyperslabError as error:
            said = str(error)
            refused.append(mode)
        assert not said or ("journal" in said and path.read_bytes() == before), f"{said}: refused, or touched"
    assert refused in ([], ["r", "r+"]), refused
    if refused:
        return False
    assert_versions(path, expected, is_finished=True)
    assert not journal_of(path).exists()
    return True


def assert_right(path: Path, expected: Expected, how: Counter[str]) -> None:
    """Everything exists, at the latest after the journal is moved away, as the message says. The next version can be
    made.
    """
    if is_right(path, expected):
        how["right"] += 1
    else:
        how["refused, right without its journal"] += 1
        journal_of(path).rename(path.with_name("away"))
        assert is_right(path, expected)
    goes_on(path)


def goes_on(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("next") as version:
            version["x"][...] = -1.0
        assert (file["next"]["x"][...] == -1.0).all()


@contextmanager
def refused(path: Path, how: Counter[str]) -> Iterator[list[bool]]:
    """Whether the write guard refused others (in a list if so). Then no byte has changed."""
    before, found = path.read_bytes(), list[bool]()
    try:
        yield found
        how["written to"] += 1
    except OSError as error:
        if "unknown message" not in str(error):
            raise
        how["refused by the guard"] += 1
        found.append(True)
    assert not found or path.read_bytes() == before


Stranger = Callable[[Path, Expected, "Counter[str]"], None]


def nobody(path: Path, expected: Expected, how: Counter[str]) -> None:
    assert_right(path, expected, how)


def others_write(path: Path, expected: Expected, how: Counter[str], *works: Callable[[Path, Expected], None]) -> None:
    """Others write, or are refused; then our open finishes the commit."""
    with refused(path, how) as is_refused:
        for work_of_others in works:
            work_of_others(path, expected)
    if is_refused:
        expected.returned += 1
        assert is_right(path, expected)
    assert_right(path, expected, how)


def another_library(path: Path, expected: Expected, how: Counter[str]) -> None:
    others_write(path, expected, how, theirs_commits)


def another_writer(path: Path, expected: Expected, how: Counter[str]) -> None:
    others_write(path, expected, how, theirs_notes)


def both_of_them(path: Path, expected: Expected, how: Counter[str]) -> None:
    others_write(path, expected, how, theirs_notes, theirs_commits)


def copied_together(path: Path, expected: Expected, how: Counter[str]) -> None:
    """Copy the file and its journal to another name."""
    copy = path.with_name(f"{path.name}.copy.h5")
    shutil.copyfile(path, copy)
    if journal_of(path).exists():
        shutil.copyfile(journal_of(path), journal_of(copy))
    assert_right(copy, expected, how)
    assert_right(path, expected, how)


def with_its_journal(moved: Path, journal: Path, expected: Expected, how: Counter[str]) -> None:
    """A file without its journal: it is right, or will be right once the journal is back."""
    try:
        assert_versions(moved, expected)
        how["right alone"] += 1
    except Exception:
        assert journal.exists()
        how["needed its journal"] += 1
    if journal.exists():
        journal.rename(journal_of(moved))
    assert_right(moved, expected, how)


def moved_away(path: Path, expected: Expected, how: Counter[str]) -> None:
    """The file is moved without its journal; another, undamaged file takes its name."""
    moved = path.with_name(f"{path.name}.moved.h5")
    path.rename(moved)
    kind = how["moved"] % 3
    how["moved"] += 1
    if kind == 0:
        committed(path.with_name("another.h5"), 2).rename(path)
        other = Expected(2)
    elif kind == 1:
        with h5py.File(path, "w") as h5:
            h5["plain"] = np.arange(3000)
        other = Expected(0)
    else:
        shutil.copyfile(moved, path)  # a copy, to which versioned-hdf5 commits
        other = Expected(expected.returned)
        with refused(path, how) as is_refused:
            theirs_commits(path, other)
        if is_refused:
            committed(path.with_name("another.h5"), 1).replace(path)
            other = Expected(1)
    before, journal = path.read_bytes(), journal_of(path)
    if kind == 1:
        for mode in ("r", "r+"):
            with pytest.raises(HyperslabError):
                hs.VersionedFile(path, mode)  # type: ignore[arg-type]
        with suppress(HyperslabError):
            hs.open(path)
        assert path.read_bytes() == before
    elif not is_right(path, other):
        how["refused"] += 1
        kept = journal.read_bytes()
        journal.rename(path.with_name("kept"))
        assert_right(path, other, how)
        journal.write_bytes(kept)
    with_its_journal(moved, journal, expected, how)


def put_back(path: Path, expected: Expected, how: Counter[str]) -> None:
    """Restore the file from an earlier backup, beside the journal."""
    shutil.copyfile(path.with_name("begun.h5"), path)
    assert_right(path, Expected(1), how)


def linked(path: Path, expected: Expected, how: Counter[str]) -> None:
    """Use another hard link without a journal beside it: a version is committed there."""
    other = path.with_name(f"{path.name}.linked.h5")
    os.link(path, other)
    try:
        assert_versions(other, expected)
    except Exception:
        how["needed its journal"] += 1
        assert journal_of(path).exists()
    else:
        how["right alone"] += 1
        with hs.VersionedFile(other) as file:
            count = len(file)
        try:
            with hs.VersionedFile(other, "r+") as file:
                commit(file, count)
            expected.returned = count + 1
        except MissingJournal:
            how["refused by the guard"] += 1
            assert_versions(other, expected)
        else:
            how["written to"] += 1
    assert_right(path, expected, how)


def renamed_both(path: Path, expected: Expected, how: Counter[str]) -> None:
    """The file and its journal get another name; a link at the old name leads there."""
    moved = path.with_name(f"{path.name}.real.h5")
    path.rename(moved)
    if journal_of(path).exists():
        journal_of(path).rename(journal_of(moved))
    path.symlink_to(moved.name)
    assert_right(path, expected, how)


STRANGERS: list[Stranger] = [
    nobody, another_library, another_writer, both_of_them, copied_together, moved_away, put_back, linked, renamed_both,
]  # fmt: skip

WRITERS = (another_library, another_writer, both_of_them, linked)


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(committed(tmp_path / "begun.h5", 1), work, monkeypatch, returned=1)


def campaign(points: Iterator[int], trials: Trials, stranger: Stranger, *, without_power: bool) -> None:
    """What happens after each of these points."""
    how: Counter[str] = Counter()
    count = 0
    for returned in points:
        count += 1
        stranger(trials.path, Expected(returned, without_power=without_power), how)
    print(f"{stranger.__name__}: {count} points, {dict(how)}")
    if ALL and stranger in WRITERS:
        assert how["written to"] > 0  # others really write where the guard does not refuse them
        assert how["written to"] + how["refused by the guard"] + how["needed its journal"] == count


@pytest.fixture
def trials_with_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    """The file is from versioned-hdf5: our first commit gives it a guard."""
    path = tmp_path / "begun.h5"
    with h5py.File(path, "w") as h5, VersionedHDF5File(h5).stage_version("v0") as version:
        for name, data in state_of(0).items():
            options = {"dtype": h5py.string_dtype()} if data.dtype == object else {"compression": "gzip"}
            version.create_dataset(name, data=data, chunks=(40,), **options)
    return Trials(path, work, monkeypatch, returned=1)


@pytest.mark.parametrize("stranger", [nobody, both_of_them])
def test_a_file_of_theirs(trials_with_theirs: Trials, stranger: Stranger) -> None:
    campaign(trials_with_theirs.kills(3), trials_with_theirs, stranger, without_power=False)
    campaign(trials_with_theirs.power_cuts(3, 1), trials_with_theirs, stranger, without_power=True)


@pytest.mark.slow
@pytest.mark.parametrize("stranger", STRANGERS)
def test_killed_and_then(trials: Trials, stranger: Stranger) -> None:
    campaign(trials.kills(3), trials, stranger, without_power=False)


@pytest.mark.slow
@pytest.mark.parametrize("stranger", STRANGERS)
def test_without_power_and_then(trials: Trials, stranger: Stranger) -> None:
    campaign(trials.power_cuts(3, 2 if ALL else 1), trials, stranger, without_power=True)
