"""What the shells offer after TAB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hyperslab.cli.commands import ENTRIES
from hyperslab.cli.completing import SCRIPTS, VALUES, answer, offers

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[hdf5]'")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with h5py.File(tmp_path / "ocean.nc", "w") as file:
        file["temp"] = np.zeros((3, 4))
        file["tide"] = np.zeros(3)
        file["deep/salt"] = np.zeros(2)
        file["bad\x1b[31mname"] = 1
    (tmp_path / "damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(40))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(line: str) -> list[str]:
    return [one.partition("\t")[0] for one in answer(line).splitlines()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hyperslab in", ["info", "index"]),
        ("hyperslab versions d", ["delete", "diff"]),
        ("hyperslab info --js", ["--json"]),
        ("hyperslab bench --sca", ["--scale"]),
        ("hyperslab bench --scale ", ["quick", "small", "paper"]),
        ("hyperslab bench --scale=p", ["--scale=paper"]),
        ("hyperslab completion z", ["zsh"]),
        ("hyperslab read ocean.nc t", ["temp", "tide"]),
        ("hyperslab read ocean.nc /t", ["/temp", "/tide"]),
        ("hyperslab read --json ocean.nc de", ["deep/salt"]),
        ("hyperslab read ocean.nc:te", ["ocean.nc:temp"]),
        ("hyperslab read 'ocean.nc:te", ["ocean.nc:temp"]),
        ("hyperslab bench --data ocean.nc:ti", ["ocean.nc:tide"]),
        ("hyperslab bench --data=ocean.nc:ti", ["--data=ocean.nc:tide"]),
        ("hyperslab predict ocean.nc:", ["ocean.nc:deep/salt", "ocean.nc:temp", "ocean.nc:tide"]),
        ("hyperslab read damaged.h5 t", []),
        ("hyperslab read nosuch.h5 t", []),
        ("hyperslab read oc", []),
        ("hyperslab nosuch ", []),
        ("hyperslab formats zarr", ["zarr2", "zarr3", "zarr3-sharded", "zarrs"]),
    ],
)
def test_offers(line: str, expected: list[str], folder: Path) -> None:
    assert sorted(values(line)) == sorted(expected)


def test_studies_are_offered() -> None:
    assert "mine" in values("hyperslab bench m")
    assert "mine" in values("hyperslab studies m")


def test_offers_never_break_the_terminal(folder: Path) -> None:
    assert "\x1b" not in answer("hyperslab read ocean.nc ")


def test_what_has_values_exists() -> None:
    for path, name in VALUES:
        command, *rest = path.split()
        found = ENTRIES[command].load(command)
        for word in rest:
            found = found.commands[word]
        assert name in {one.name for one in found.params}, (path, name)


def test_every_command_is_offered() -> None:
    assert [value for value, _ in offers([], "")] == list(ENTRIES)


def shells_program(folder: Path) -> str:
    """A `hyperslab` on the path that runs this checkout."""
    program = folder / "hyperslab"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hyperslab "$@"\n')
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.slow  # Bash asks a new process
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hyperslab read ocean.nc:te", ["temp"]),  # Bash has cut the word at the colon
        ("hyperslab read ocean.nc ti", ["tide"]),
        ("hyperslab versions st", ["stats"]),
        ("hyperslab bench --data=ocean.nc:ti", ["tide"]),
    ],
)
def test_bash(line: str, expected: list[str], folder: Path) -> None:
    script = SCRIPTS["bash"] + (
        f"COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'\n"
        "_hyperslab hyperslab\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": shells_program(folder)}, check=True)  # fmt: skip
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed: apt-get install fish")
def test_fish(folder: Path) -> None:
    script = SCRIPTS["fish"] + "complete --do-complete 'hyperslab read ocean.nc:te'\n"
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": shells_program(folder)}, check=True)  # fmt: skip
    assert done.stdout.split("\t")[0].strip() == "ocean.nc:temp", done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed: apt-get install zsh")
def test_zsh(folder: Path) -> None:
    """The function with `compadd` replaced by one that prints what it was given."""
    script = (
        "compdef() { : }; _files() { echo files }; compadd() { print -l -- $values }\n" + SCRIPTS["zsh"]
        + "words=(hyperslab read ocean.nc:te); CURRENT=3; _hyperslab\n"
        + "words=(hyperslab read oc); CURRENT=3; _hyperslab\n"
    )  # fmt: skip
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": shells_program(folder)}, check=True)  # fmt: skip
    assert done.stdout.split() == ["ocean.nc:temp", "files"], done.stderr


def test_the_manual_page_has_every_command(tmp_path: Path) -> None:
    from hyperslab.cli.manual import manual

    page = manual()
    assert page.startswith(".TH HYPERSLAB 1")
    for name in ENTRIES:
        assert f".SS hyperslab {name}" in page
    assert ".SS hyperslab versions diff" in page
    assert not [line for line in page.splitlines() if line.startswith("'")]
    if shutil.which("man"):
        (tmp_path / "hyperslab.1").write_text(page)
        words = ["man", "--warnings", "-l", str(tmp_path / "hyperslab.1")]
        done = subprocess.run(words, capture_output=True, text=True,
                              env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}, check=True)  # fmt: skip
        assert "warning" not in done.stderr, done.stderr
        assert "--json" in done.stdout
