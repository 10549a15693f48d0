"""`hyperslab versions` as users see it."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.cli.versions import app

TIME = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)


def hyperslab(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_hyperslab("versions", *arguments)


def said(*arguments: object) -> str:
    done = hyperslab(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(*arguments: object) -> Any:
    return json.loads(said(*arguments, "--json"))


def refused(status: int, *arguments: object) -> str:
    done = hyperslab(*arguments)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("commands") / "survey.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("march", timestamp=TIME) as version:
            version.create_dataset("depth", data=np.arange(600.0).reshape(20, 30), chunks=(5, 10), compression="gzip")
            version.create_dataset("g/track", data=np.arange(100), chunks=(10,))
            version["depth"].attrs["units"] = "m"
            version.attrs["author"] = "Ada"
        with file.stage_version("april", timestamp=TIME + dt.timedelta(31)) as version:
            version["depth"][3:7, 2:5] = np.nan
            version["g/track"][50] = -1
            version["g/track"].resize((120,))
            version["new"] = np.zeros(3)
    return path


def test_help_groups_all_commands_by_what_a_person_wants() -> None:
    named = [command.name for command in app.registered_commands]
    panels = [command.rich_help_panel for command in app.registered_commands]
    assert [panel for panel, _ in groupby(panels)] == [
        "Look",
        "Name, branch and merge",
        "Take elsewhere",
        "Free space, mend",
    ]
    text = said("--help")
    assert "─ Commands ─" not in text, "a command is in no group"
    assert all(f" {name} " in text for name in named)
    assert all("Example: hyperslab versions" in (command.callback.__doc__ or "") for command in app.registered_commands)


@pytest.mark.slow
def test_log(survey: Path) -> None:
    text = said("log", survey)
    assert "april *" in text
    assert "~depth 2" in text
    assert "+new" in text
    march, april = as_json("log", survey)["versions"]
    assert (march["name"], march["parent"], march["time"]) == ("march", None, TIME.isoformat())
    assert march["attributes"] == {"author": "Ada"}
    assert (april["is_current"], april["nbytes"], april["new_nbytes"] > 0) == (True, 600 * 8 + 120 * 8 + 24, True)
    changes = {change["array"]: (change["status"], change["chunk_count"]) for change in april["changes"]}
    assert changes == {"depth": ("changed", 2), "g/track": ("changed", 3), "new": ("added", 1)}


@pytest.mark.slow
def test_show(survey: Path) -> None:
    text = said("show", survey, -1)
    assert "march, without a parent, 2024-03-01 00:00:00 UTC" in text
    assert "author: Ada" in text
    assert "20×30" in text
    found = as_json("show", survey, "2024-03-15")
    assert found["version"] == "march"
    depth = next(row for row in found["contents"] if row["name"] == "depth")
    assert (depth["attributes"], depth["codecs"], depth["chunks"]) == ({"units": "m"}, ["deflate"], [5, 10])


@pytest.mark.slow
def test_diff(survey: Path, tmp_path: Path) -> None:
    text = said("diff", survey, "march", "april", "--elements")
    assert "[3:7, 2:5]" in text
    assert "1, 20 new" in text
    found = as_json("diff", survey, "-1")
    assert [(one["array"], one["status"]) for one in found["arrays"]] == [
        ("depth", "changed"),
        ("g/track", "changed"),
        ("new", "added"),
    ]
    assert found["arrays"][0]["chunks"] == [[0, 0], [1, 0]]
    assert "elements" not in found["arrays"][0]
    only = as_json("diff", survey, "march", "--array", "depth", "--elements", "--figure", tmp_path / "d.svg")
    assert only["arrays"][0]["elements"]["boxes"] == [[[3, 7], [2, 5]]]
    assert only["arrays"][0]["elements"]["values"][1] == ["nan", "nan"]
    assert len(only["arrays"]) == 1
    assert "march → april" in (tmp_path / "d.svg").read_text()
    assert "figure:" in said("diff", survey, "march", "april", "--figure", tmp_path / "d.png")
    assert (tmp_path / "d.png").read_bytes()[:4] == b"\x89PNG"
    assert "are the same" in said("diff", survey, "april", "april")
    assert "no array 'deep'" in refused(2, "diff", survey, "march", "--array", "deep")
    assert ".png" in refused(2, "diff", survey, "march", "--figure", tmp_path / "d.pdf")


@pytest.mark.slow
def test_stats(survey: Path) -> None:
    assert "shared with parent" in said("stats", survey)
    found = as_json("stats", survey)
    assert found["deduplication_ratio"] > 1.5
    assert [version["name"] for version in found["versions"]] == ["march", "april"]


@pytest.mark.slow
def test_verify(survey: Path, tmp_path: Path) -> None:
    assert "2 versions, 25 chunks" in said("verify", survey)
    assert as_json("verify", survey, "march")["chunk_count"] == 22
    data = bytearray(survey.read_bytes())
    with h5py.File(survey) as file:
        offset = file["_version_data/g/track/raw_data"].id.get_chunk_info(3).byte_offset
    data[offset] ^= 1
    damaged = tmp_path / "damaged.h5"
    damaged.write_bytes(data)
    assert "1 item is damaged" in refused(1, "verify", damaged)
    done = hyperslab("verify", damaged)
    assert "array g/track at (3,) in march, april: chunk 3: its elements do not have the hash" in done.stdout
    found = json.loads(hyperslab("verify", damaged, "--json").stdout)
    assert (found["is_whole"], found["damages"][0]["chunk_index"]) == (False, [3])


@pytest.mark.slow
def test_export(survey: Path, tmp_path: Path) -> None:
    assert "2 arrays" in said("export", survey, "march", "-o", tmp_path / "march.h5")
    with h5py.File(tmp_path / "march.h5") as file:
        np.testing.assert_array_equal(file["depth"], np.arange(600.0).reshape(20, 30))
    assert as_json("export", survey, "0", "-o", tmp_path / "april.json")["array_count"] == 3
    assert "choose the format" in refused(2, "export", survey, "march", "-o", tmp_path / "march.csv")


@pytest.mark.slow
def test_wrong_requests_are_one_line(survey: Path, tmp_path: Path) -> None:
    assert "there is no file" in refused(2, "log", tmp_path / "none.h5")
    assert "no version 'may' in" in refused(2, "show", survey, "may")
    assert "fewer than 5 versions" in refused(2, "diff", survey, "-5")
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["x"] = 1
    assert "holds no versions" in refused(1, "stats", tmp_path / "plain.h5")


@pytest.mark.slow
def test_delete(survey: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(survey, tmp_path / "survey.h5"))
    assert "confirm with --yes" in refused(2, "delete", path, "march")
    assert as_json("log", path)["versions"][0]["name"] == "march"
    assert "no version 'may'" in refused(2, "delete", path, "may", "--yes")
    assert "march deleted, 1 versions are left" in said("delete", path, "-1", "--yes")
    assert "1 versions" in said("verify", path)
    assert as_json("delete", path, "april", "--yes", "--no-repack")["versions"] == []


@pytest.mark.slow
def test_branches_and_tags(survey: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(survey, tmp_path / "survey.h5"))
    assert as_json("branch", path)["branches"][0]["version"] == "april"
    assert "branch side is at march" in said("branch", path, "side", "--at", "march")
    assert "branch side is checked out, march is current" in said("checkout", path, "side")
    assert "tag paper is april" in said("tag", path, "paper", "--at", "main", "-m", "Figure 3", "--author", "Ada")
    assert as_json("tag", path)["tags"][0]["message"] == "Figure 3"
    assert "side *" in said("branch", path)
    assert "Figure 3" in said("tag", path)
    assert "april (main, paper)" in said("log", path)
    assert [one["refs"] for one in as_json("log", path)["versions"]] == [["side"], ["main", "paper"]]
    assert "april, child of march" in said("show", path, "paper")
    assert "has the tag 'paper'" in refused(2, "delete", path, "april", "--yes")
    assert "april deleted" in said("delete", path, "april", "--yes", "--force")
    assert "dangling" in said("verify", path)
    assert "tag paper deleted" in said("tag", path, "paper", "--delete")
    assert "branch main deleted" in said("branch", path, "main", "--delete")
    assert "is checked out" in refused(2, "branch", path, "side", "--delete")
    assert "no branch 'sid'" in refused(2, "checkout", path, "sid")
    assert "name the tag" in refused(2, "tag", path, "--delete")


@pytest.mark.slow
def test_merge(survey: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(survey, tmp_path / "survey.h5"))
    with hs.VersionedFile(path, "r+") as file, file.stage_version("side-1", "march", branch="side") as version:
        version["depth"][19, 29] = 7
        version["depth"][3, 3] = 7
    assert "1 elements [3:4, 3:4]: nothing was merged" in refused(2, "merge", path, "side")
    assert len(as_json("log", path)["versions"]) == 3
    text = said("merge", path, "side", "--into", "main", "--conflict", "theirs", "--name", "may", "-m", "both")
    assert "side-1 merged, may is the new version" in text
    assert "settled: depth: 1 elements [3:4, 3:4]" in text
    assert "nothing to merge" in said("merge", path, "side")
    assert as_json("merge", path, "main", "--into", "side")["how"] == "moved"
    assert as_json("show", path, "0")["attributes"] == {"message": "both"}


@pytest.mark.slow
def test_graph_and_blame(survey: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(survey, tmp_path / "survey.h5"))
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("side-1", "march", branch="side", author="Ada", message="gauge") as version:
            version["depth"][19, 29] = 7
        file.merge("side", name="may")
    rows = said("log", path, "--graph").splitlines()
    assert [row[:4].rstrip() for row in rows] == ["●  m", "├─╮", "│ ●", "● │", "├─╯", "●  m"]
    assert "may * (main)" in rows[0]
    assert [one["merged"] for one in as_json("log", path, "--graph")["versions"]] == [None, None, None, "side-1"]
    assert "gauge" in said("blame", path, "depth", "19")
    assert "gauge" not in said("blame", path, "depth", "0")
    found = as_json("blame", path, "depth", "10:, 25", "--version", "main")
    assert [one["version"] for one in found["chunks"]] == ["march", "side-1"]
    assert [one["version"] for one in as_json("blame", path, "depth", "--all")["changes"]] == [
        "side-1",
        "april",
        "march",
    ]
    assert "no array 'deep'" in refused(2, "blame", path, "deep")


@pytest.mark.slow
def test_repair(survey: Path, tmp_path: Path) -> None:
    assert "2 versions" in said("repair", survey, "-o", tmp_path / "whole.h5")
    assert as_json("verify", tmp_path / "whole.h5")["is_whole"]
    data = bytearray(survey.read_bytes())
    with h5py.File(survey) as file:
        data[file["_version_data/g/track/raw_data"].id.get_chunk_info(3).byte_offset] ^= 1
    (tmp_path / "damaged.h5").write_bytes(data)
    assert "2 items are lost" in refused(1, "repair", tmp_path / "damaged.h5", "-o", tmp_path / "mended.h5")
    assert as_json("verify", tmp_path / "mended.h5")["is_whole"]
    assert "there is no file" in refused(2, "repair", tmp_path / "none.h5", "-o", tmp_path / "x.h5")


@pytest.mark.parametrize(
    "command", [("delete", "march", "--yes"), ("repack",), ("expire", "--keep-last", "1", "--yes")]
)
def test_what_rewrites_a_file_shows_its_progress(
    survey: Path,
    tmp_path: Path,
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = shutil.copy(survey, tmp_path / "survey.h5")
    monkeypatch.setattr("hyperslab.cli.progress.LOG_EVERY_SECONDS", 0.0)
    app([command[0], str(path), *command[1:]], standalone_mode=False)
    shown = [line for line in capsys.readouterr().err.splitlines() if " parts" in line]
    assert [line.split()[0] for line in shown] == [str(number) for number in range(len(shown))]
    assert shown[-1].split()[4] == str(len(shown)), "as many as it said"
