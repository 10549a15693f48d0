"""The command line for users: what it lists, and how it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from command_line import run_hyperslab
from hyperslab.bench.results import load_run
from hyperslab.formats import FORMATS


@dataclass(frozen=True)
class Measured:
    """Two runs of the tiny study and what the command said: "a" to people, "b" as JSON."""

    folder: Path
    said: subprocess.CompletedProcess[str]
    said_as_json: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, tiny: dict[str, object]) -> Measured:
    folder = tmp_path_factory.mktemp("measured")
    (folder / "study.yaml").write_text(yaml.safe_dump(tiny))
    asked = ["bench", folder / "study.yaml", "--trials", 3]
    said = run_hyperslab(*asked, "-o", folder / "a")
    assert said.returncode == 0, said.stderr
    return Measured(folder, said, run_hyperslab(*asked, "-o", folder / "b", "--json"))


@pytest.mark.slow
def test_formats_lists_every_format_with_its_capabilities(hyperslab) -> None:
    rows = json.loads(hyperslab("formats", "--json").stdout)
    assert [row["name"] for row in rows] == list(FORMATS)
    for row in rows:
        assert row["available"] == (row["reason"] is None)
        assert row["capabilities"]["dtypes"]


def test_a_format_has_a_manual_page(hyperslab) -> None:
    page = hyperslab("formats", "hdf5").stdout
    assert "codecs:" in page
    assert "options:" in page


def test_studies_lists_names_and_titles(hyperslab) -> None:
    rows = json.loads(hyperslab("studies", "--json").stdout)
    names = [row["name"] for row in rows]
    assert len(names) == len(set(names))
    assert {"common-io-1", "common-io-33", "formats-2002-many", "mine"} <= set(names)
    assert all(row["title"] for row in rows)


@pytest.mark.slow
def test_a_run_leaves_what_people_use(measured, tmp_path, hyperslab) -> None:
    assert "report.html" in measured.said.stdout
    names = {path.name for path in (measured.folder / "a").iterdir()}
    assert {"run.json", "trials.parquet", "trials.csv", "summary.csv", "verdicts.json", "report.html"} <= names
    assert not [name for name in names if name.endswith(".new")]
    again = hyperslab("report", shutil.copytree(measured.folder / "a", tmp_path / "run"))
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
def test_parquet_holds_every_raw_trial_with_unknown_as_null(measured) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(measured.folder / "a" / "trials.parquet").to_pylist()
    assert rows == [trial.to_dict() for trial in load_run(measured.folder / "a").trials]
    write = next(row for row in rows if row["operation"] == "write")
    assert write["read_seconds"] is None
    assert write["write_seconds"] > 0


@pytest.mark.slow
def test_json_is_for_scripts(measured) -> None:
    found = json.loads(measured.said_as_json.stdout)
    assert {entry["format"] for entry in found["rankings"][0]["entries"]} == {"raw", "npy"}


@pytest.mark.slow
def test_two_runs_are_compared(measured, hyperslab) -> None:
    done = hyperslab("compare", measured.folder / "a", measured.folder / "b")
    assert done.returncode == 0, done.stderr
    assert "raw" in done.stdout


@pytest.mark.slow
def test_the_users_own_array_is_measured(tmp_path, study, hyperslab) -> None:
    values = np.arange(24, dtype=">i4").reshape(2, 3, 4)
    np.save(tmp_path / "mine.npy", values)
    path = study(formats=["raw", "npy", "hdf5"], operations=["write", "read-all", "read-map"])
    done = hyperslab("bench", path, "--data", f"{tmp_path}/mine.npy:mine", "-o", tmp_path / "run", "--trials", 3)
    assert done.returncode == 0, done.stderr
    trials = load_run(tmp_path / "run").trials
    assert {trial.shape for trial in trials} == {"2x3x4"}
    assert {trial.dtype for trial in trials} == {"int32"}
    assert all(trial.verified for trial in trials)


@pytest.mark.parametrize(
    ("different", "said"),
    [
        ({"colour": "red"}, "colour"),
        ({"shape": [-4, 4]}, "shape"),
        ({"shape": [0]}, "shape"),
        ({"formats": ["hdf6"]}, "hdf6"),
        ({"operations": ["read-everything"]}, "read-everything"),
        ({"dtype": "float33"}, "float33"),
        ({"conditions": {"c": {"chunks": [4]}}}, "chunks"),
        ({"conditions": {"c": {"chunks": [4, 0, 4]}}}, "chunks"),
        ({"conditions": {"c": {"codecs": ["deflate:x"]}}}, "deflate"),
        ({"options": {"hdf5": {"speed": 9}}, "formats": ["hdf5"]}, "speed"),
        ({"replay": "seed9"}, "seed9"),
    ],
)
def test_a_wrong_study_is_refused_in_one_line(tmp_path, study, hyperslab, different, said) -> None:
    done = hyperslab("bench", study(**different), "-o", tmp_path / "run", "--scale", "paper")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_wrong_requests_are_refused_in_one_line(tmp_path, study, hyperslab) -> None:
    (tmp_path / "broken.nc").write_bytes(b"not a netCDF file")
    (tmp_path / "list.yaml").write_text("- 1\n")
    path = study()
    cases = {
        "unknown study": ["bench", "no-such-study"],
        "cannot be read": ["bench", tmp_path / "none.yaml"],
        "must be a mapping": ["bench", tmp_path / "list.yaml"],
        "there is no file": ["bench", path, "--data", f"{tmp_path}/none.nc:sst"],
        "broken.nc": ["bench", path, "--data", f"{tmp_path}/broken.nc:sst"],
        "no conditions": ["bench", path, "--conditions", "fast"],
        "cannot be written": ["bench", path, "-o", "/proc/nowhere/run"],
        "does not hold a run": ["report", tmp_path],
        "unknown format": ["formats", "hdf6"],
        "nothing has a published method": ["bench", path, "--method", "published"],
    }
    for said, arguments in cases.items():
        extra = ["-o", tmp_path / "out"] if arguments[0] == "bench" and "-o" not in arguments else []
        done = hyperslab(*arguments, *extra)
        assert done.returncode == 2, (said, done.stdout, done.stderr)
        assert said in done.stderr, (said, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_second_run_does_not_overwrite_the_first(measured, tmp_path, study, hyperslab) -> None:
    shutil.copytree(measured.folder / "a", tmp_path / "run")
    before = (tmp_path / "run" / "trials.jsonl").read_bytes()
    done = hyperslab("bench", study(), "-o", tmp_path / "run", "--trials", 3)
    assert done.returncode == 2
    assert "--resume" in done.stderr
    assert (tmp_path / "run" / "trials.jsonl").read_bytes() == before


def test_a_run_that_cannot_fit_says_so_with_figures_before_it_starts(tmp_path, study, hyperslab) -> None:
    path = study(shape=[1 << 30, 1024])
    done = hyperslab("bench", path, "-o", tmp_path / "run", "--scale", "paper")
    assert done.returncode == 2
    assert "GB" in done.stderr
    assert not (tmp_path / "run" / "trials.jsonl").exists()
