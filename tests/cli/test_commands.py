"""The list of commands imports none of them, and says what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from command_line import run_hyperslab
from hyperslab.cli import app
from hyperslab.cli.commands import ENTRIES, GROUPS

runner = CliRunner()
IMPORTED = "import sys; from hyperslab.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize("name", ENTRIES)
def test_a_line_is_the_first_of_the_commands_own_help(name: str) -> None:
    found = ENTRIES[name].load(name)
    assert found.name == name
    assert (found.help or "").split("\n\n")[0].replace("\n", " ") == ENTRIES[name].line


def test_help_imports_no_library() -> None:
    listed = subprocess.run([sys.executable, "-c", IMPORTED, "--help"], capture_output=True, text=True, check=True)
    places = [listed.stdout.index(f"│ {name} ") for name in ENTRIES]
    assert places == sorted(places)
    titles = [listed.stdout.index(f"─ {title} ─") for title in GROUPS]
    assert titles == sorted(titles)
    assert "─ Commands ─" not in listed.stdout, "a command is in no group"
    loaded = set(listed.stderr.split())
    assert "typer" in loaded
    assert not loaded & {"numpy", "h5py", "pydantic", "zarr", "hyperslab.archive", "hyperslab.cli.bench"}


@pytest.mark.parametrize("words", [[], ["versions"]])
def test_without_a_command_the_help_is_shown_once(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "hyperslab", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert (done.stdout + done.stderr).count("Usage:") == 1


def test_a_command_that_does_not_exist() -> None:
    done = runner.invoke(app, ["inof", "a.h5"])
    assert done.exit_code == 2
    assert "Did you mean 'info'?" in done.output


@pytest.fixture
def small(tmp_path: Path) -> Path:
    h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(10, dtype=np.float32) / np.float32(10)
        file["g/é"] = np.arange(3)
    return path


def command(*words: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "hyperslab", *map(str, words)]
    return subprocess.run(program, stderr=subprocess.PIPE, text=True, check=False, **settings)


@pytest.mark.parametrize(
    "words", [["--help"], ["info", "FILE"], ["read", "FILE", "x"], ["read", "FILE", "x", "--json"]]
)
def test_a_full_standard_output_is_one_line(words: list[str], small: Path) -> None:
    with open("/dev/full", "w") as full:
        done = command(*[str(small) if word == "FILE" else word for word in words], stdout=full)
    assert done.returncode == 1
    assert done.stderr == "hyperslab: nothing more can be written: No space left on device [no-space]\n"


def test_a_terminal_without_unicode(small: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = command("info", small, stdout=subprocess.PIPE, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "`-- x" in done.stdout, "branches stay branches"
    assert done.stdout.count("?") == 1, "only the letter é is lost"


def test_an_array_may_follow_a_colon(small: Path) -> None:
    for words in ([small, "x", "1:3"], [f"{small}:x", "1:3"], [f"{small}:/x", "1:3"]):
        done = runner.invoke(app, ["read", *map(str, words), "--json"])
        assert json.loads(done.stdout)["values"] == [0.1, 0.2], "a float32 keeps its own digits"
    assert "no array is named" in str(runner.invoke(app, ["read", str(small)]).exception)
    assert ".npy" in str(runner.invoke(app, ["read", str(small), "x", "-o", str(small.parent / "x.csv")]).exception)
    assert not (small.parent / "x.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["inof"], "no such command 'inof'; did you mean 'info'?; "),
        (["versions", "shw"], "did you mean 'show'?"),
        (["bench", "--trails", "3"], "no such option: --trails; did you mean --trials?; "),
        (["bench", "--scale", "huge"], "'huge' is not one of 'quick', 'small', 'paper'"),
        (["bench", "--scale", "quik"], "did you mean 'quick'?"),
        (["bench", "--trials", "0"], "'--trials': give at least 1"),
        (["bench", "--seed", "x"], "'--seed': give a whole number"),
        (["read", "FILE", "x", "0", "--jsn"], "there is no option --jsn; did you mean '--json'?"),
        (["info", "."], "name a file in it"),
        (["info", "https://localhost:1/a.h5", "--option", "heders=x"], "did you mean 'headers'?"),
        (["info", "s3://bucket/a.h5", "--option", "regon=x"], "did you mean 'region'?"),
        (["bench", "--formats", "hdf6"], "did you mean 'hdf5'?"),
        (["bench", "--cache", "lukewarm"], "lukewarm"),
        (["bench", "--conditions", "nosuch"], "nosuch"),
        (["bench", "min"], "did you mean 'mine'?"),
        (["bench", "--data", "FILE"], "--data FILE: name an array, as in --data FILE:g/é"),
        (["bench", "--data", "FILE:y"], "has no array 'y'"),
        (["bench", "--data", "nosuch.h5:x"], "there is no file nosuch.h5"),
        (["info", "https://localhost:1/a.h5", "--option", "headers=x"], "headers is not a mapping"),
        (["info", "https://localhost:1/a.h5", "--option", 'headers={"a"'], "not valid JSON"),
        (["info", "https://localhost:1/a.h5", "--option", "headers"], "write it as --option key=value"),
        (["formats", "hdf6"], "did you mean 'hdf5'?"),
        (["read", "FILE:xx"], "did you mean '/x'?"),
        (["predict", "FILE:x", "--cache", "cod"], "is not a cache state; did you mean 'cold'?"),
        (["advise", "FILE:x", "--like", "sereis"], "did you mean 'series'?"),
        (["read", "FILE", "x", "--selection"], "--selection"),
        (["run", "--qiet"], "did you mean '--quiet'?"),
    ],
)
def test_a_wrong_request_is_one_line(words: list[str], said: str, small: Path, tmp_path: Path) -> None:
    asked = [word.replace("FILE", str(small)) for word in words]
    done = run_hyperslab(*asked, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert said.replace("FILE", str(small)) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "hyperslab-run").exists()


@pytest.mark.parametrize("words", [["info", "FILE"], ["info", "FILE", "--json"], ["info", "-v", "FILE", "FILE"]])
def test_info_without_typer_says_the_same(words: list[str], small: Path) -> None:
    """`info` with plain words starts without typer, and any option that takes a value brings typer back."""
    asked = [str(small) if word == "FILE" else word for word in words]
    plain = run_hyperslab(*asked)
    by_typer = run_hyperslab(*asked, "--allowed", small.parent)
    assert plain.stdout == by_typer.stdout != ""


def test_info_imports_what_it_needs_only(small: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, "info", str(small)], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert "numpy" in loaded
    slow = {"typer", "click", "pydantic", "h5py", "zarr", "fsspec", "xarray", "asyncio", "ssl", "difflib",
            "hyperslab.versions", "hyperslab.model", "hyperslab.formats", "hyperslab.references"}  # fmt: skip
    assert not loaded & slow


def test_info_into_a_closed_pipe_is_quiet(small: Path) -> None:
    program = f"{sys.executable} -m hyperslab info {' '.join([str(small)] * 30)} | head -n 1"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
