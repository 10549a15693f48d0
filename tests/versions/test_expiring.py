"""Versions that go by their age and number: which, what they free, and that a kill leaves all of them or none."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import Trials
from typer.testing import CliRunner
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.cli.versions import app
from hyperslab.errors import FileReplaced, UsageError

NOON = dt.datetime(2024, 6, 30, 12, tzinfo=dt.UTC)


def commit(file: hs.VersionedFile, name: str, hours: float, **options: Any) -> None:
    """A version that many hours before noon."""
    with file.stage_version(name, timestamp=NOON - dt.timedelta(hours=hours), **options) as version:
        if "x" not in version:
            version.create_dataset("x", data=np.arange(400), chunks=(100,))
        version["x"][int(hours) % 4 * 100] = -hash_of(name)


def hash_of(name: str) -> int:
    return sum(map(ord, name)) * 1000 + len(name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two versions a day on main for four days, a branch, a tag, and a version that leads nowhere."""
    made = tmp_path / "v.h5"
    with hs.VersionedFile(made, "w") as file:
        for day in range(4, 0, -1):
            commit(file, f"m{day}a", 24 * day + 4)
            commit(file, f"m{day}b", 24 * day)
        commit(file, "s1", 90, branch="side", prev_version="m4b")
        commit(file, "s2", 80, branch="side")
        commit(file, "lost", 70, prev_version="m3a", make_current=False)
        file.create_tag("paper", "m3a")
    return made


def expired(path: Path, **rule: Any) -> list[str]:
    with hs.VersionedFile(path) as file:
        return sorted(file.expire(**rule, now=NOON, dry_run=True).names)


def test_what_each_rule_lets_go(path: Path) -> None:
    assert expired(path, keep_last=2) == ["m2a", "m2b", "m3b", "m4a", "m4b"]
    assert expired(path, keep_last=1) == ["m1a", "m2a", "m2b", "m3b", "m4a", "m4b", "s1"]
    assert expired(path, keep_last=1, keep_tags=False) == ["m1a", "m2a", "m2b", "m3a", "m3b", "m4a", "m4b", "s1"]
    assert expired(path, older_than=dt.timedelta(hours=72)) == ["m3b", "m4a", "m4b", "s1"]
    assert expired(path, thin="1/day") == ["m1a", "m2a", "m4a"]
    assert expired(path, thin="2/day") == []
    assert expired(path, keep_last=2, older_than=dt.timedelta(hours=72), thin="1/day") == ["m4a"]
    assert expired(path, keep_last=1, thin="1/month") == ["m1a", "m2a", "m2b", "m3b", "m4a", "m4b", "s1"]
    with hs.VersionedFile(path) as file:
        kept = file.expire(keep_last=1, now=NOON, dry_run=True).kept
        assert kept["m3a"] == "it has the tag 'paper'"
        assert kept["s2"] == "it is the head of branch 'side'"
        assert kept["lost"] == "it is one of the last 1 of 'lost'"
        assert len(file) == 11


def test_the_bytes_are_those_that_only_these_use(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        before = file.stats()
        found = file.expire(keep_last=1, now=NOON)
        assert sorted(found.names) == ["m1a", "m2a", "m2b", "m3b", "m4a", "m4b", "s1"]
        after = file.stats()
        assert (found.nbytes, found.unused_nbytes) == (before.stored_nbytes - after.stored_nbytes, 0)
        assert found.nbytes == found.chunk_count * 800 > 0
        assert file.versions == ["s2", "m3a", "lost", "m1b"]
        assert file.table["m1b"].parent == "m3a"
        assert {name: one.version for name, one in file.branches.items()} == {"main": "m1b", "side": "s2"}
        assert file.tags["paper"].version == "m3a"
        assert file.verify().is_whole
        assert file.expire(keep_last=1, now=NOON).names == ()
        commit(file, "next", -1)
        assert file["next"]["x"].shape == (400,)
    with h5py.File(path) as h5:
        assert VersionedHDF5File(h5)["m1b"]["x"][0] == -hash_of("m1b")


def test_rules_that_make_no_sense_are_refused(path: Path) -> None:
    before = path.read_bytes()
    with hs.VersionedFile(path, "r+") as file:
        for rule, said in (
            ({}, "give keep_last"), ({"keep_last": 0}, "at least one"), ({"thin": "1/minute"}, "1/day"),
            ({"thin": "0/day"}, "1/day"), ({"older_than": dt.timedelta(-1)}, "not negative"),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=said):
                file.expire(**rule)  # type: ignore[arg-type]
    with hs.VersionedFile(path) as file, pytest.raises(UsageError, match="reading only"):
        file.expire(keep_last=1)
    assert path.read_bytes() == before


def test_a_replaced_file_loses_nothing(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.h5"
    other.write_bytes(path.read_bytes())
    with hs.VersionedFile(path, "r+") as file:
        other.rename(path)
        with pytest.raises(FileReplaced):
            file.expire(keep_last=1)
    with hs.VersionedFile(path) as file:
        assert len(file) == 11


def test_the_command(path: Path) -> None:
    runner = CliRunner()
    asked = ["expire", str(path), "--keep-last", "2"]
    dry = runner.invoke(app, [*asked, "--dry-run"])
    assert dry.exit_code == 0
    assert "5 of 11 versions would go: m4a, m4b, m3b, m2a, m2b" in dry.stdout
    assert runner.invoke(app, asked).exit_code != 0  # nobody confirmed it
    assert runner.invoke(app, [*asked, "--older-than", "9x"]).exit_code != 0
    done = json.loads(runner.invoke(app, [*asked, "--yes", "--json"]).stdout)
    assert sorted(done["expired"]) == ["m2a", "m2b", "m3b", "m4a", "m4b"]
    assert done["nbytes_after"] < done["nbytes_before"]
    with hs.VersionedFile(path) as file:
        assert len(file) == 6
    assert runner.invoke(app, ["repack", str(path)]).exit_code == 0


def work(path: Path) -> Iterator[int]:
    with hs.VersionedFile(path, "r+") as file:
        file.expire(keep_last=1, now=NOON)
        yield 1
        file.expire(older_than=dt.timedelta(hours=1), keep_tags=False, now=NOON, repack=False)
        yield 2


STATES = [11, 4, 2]


def check(path: Path, returned: int) -> None:
    with hs.VersionedFile(path) as file:
        assert len(file) in STATES[returned : returned + 2]
        assert {name: one.version for name, one in file.branches.items()} == {"main": "m1b", "side": "s2"}
        assert (file.tags["paper"].version is None) == (len(file) == 2)
        for name in file.versions:
            assert -hash_of(name) in file[name]["x"][::100]
    with h5py.File(path) as h5:
        assert VersionedHDF5File(h5).current_version == "m1b"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_kills(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun = tmp_path / "begun.h5"
    path.rename(begun)
    trials = Trials(begun, work, monkeypatch, returned=0)
    for returned in trials.kills(12):
        check(trials.path, returned)
