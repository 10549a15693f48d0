"""Names in a file cannot control the terminal that shows them. JSON output has them unchanged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import h5py
import pytest

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.cli.output import console, line
from hyperslab.errors import HyperslabError, printable

NAMES = [
    "\x1b]0;owned\x07",
    "\x1b[2J\x1b[31m",
    "a\nfake: 1 array",
    "b\rc",
    "\u202egnp.exe",
    "\x9b31m",
    "\u2028d",
    "\x7f",
]
MARKUP = ["[red]e", "[link=evil]f", ":warning:"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "names.h5", "w") as made:
        for name in [*NAMES, *MARKUP]:
            made[name] = [1, 2]
            made[name].attrs[name] = name
            made[f"group {name}/x"] = 1
        made["text"] = "\x1b[31m red\nsecond"
        made["\x1b[1mcut"] = h5py.SoftLink("/\x1b[1mnowhere")
        made["\x1b[1mout"] = h5py.ExternalLink("\x1b[1m.h5", "/\x1b[1mx")
    return tmp_path / "names.h5"


def steering(text: str) -> list[str]:
    return [one for one in text if not one.isprintable() and one != "\n"]


def run(*words: object) -> str:
    ran = run_hyperslab(*words, env={**os.environ, "COLUMNS": "200"})
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("command", ["info", "verify"])
def test_lists_of_arrays(path: Path, command: str) -> None:
    said = run(command, path)
    assert not steering(said)
    assert "\nfake: 1 array" not in said
    for name in ("\\x1b]0;owned\\x07", "\\u202egnp.exe", "a\\nfake: 1 array", *MARKUP):
        assert name in said


def test_json_is_exact(path: Path) -> None:
    found = json.loads(run("info", path, "--json"))
    assert {f"/{name}" for name in [*NAMES, *MARKUP]} <= {array["name"] for array in found["arrays"]}


@pytest.mark.slow
def test_what_reading_says(path: Path) -> None:
    for words in (("--plan",), ("9",), ("0:1",), ("0:1", "--json")):
        for name in NAMES[:3]:
            assert not steering(run("read", path, name, *words))
    for name in ("\x1b[1mcut", "\x1b[1mout", "\x1b[1mnothing"):
        said = run("read", path, name)
        assert not steering(said)
        assert said.count("\n") == 1
    assert run("read", path, "text") == "\\x1b[31m red\nsecond\n"


def test_saving_references(path: Path, tmp_path: Path) -> None:
    assert not steering(run("index", path, "-o", tmp_path / "refs.json", "--skip-unsupported"))


@pytest.mark.slow
def test_versions(tmp_path: Path) -> None:
    path = tmp_path / "versions.h5"
    with hs.VersionedFile(path, "w") as file:
        for name in ("\x1b[31mone", "a\ntwo"):
            with file.stage_version(name) as staged:
                staged.create_dataset(f"\x1b[1m{len(name)}", data=[1] * 5)
                assert not steering(repr(staged))
                staged.create_dataset(f"group \x07{len(name)}/x", data=[1])
    for words in (("log",), ("show",), ("stats",), ("verify",), ("diff", path, "\x1b[31mone", "a\ntwo")):
        first, *rest = words
        said = run("versions", first, *(rest or [path]))
        assert not steering(said)
        assert "\ntwo" not in said


def test_reprs_and_errors(path: Path) -> None:
    opened = hs.open(path)
    assert not steering(repr(opened))
    for array in opened.arrays.values():
        assert not steering(repr(array))
    for name in ("\x1b[1mcut", "\x1b[1mout"):
        with pytest.raises((HyperslabError, KeyError, FileNotFoundError)) as raised:
            opened[name]
        assert not steering(str(raised.value))
    error = HyperslabError("no \x1b[31m")
    assert (str(error), error.args) == ("no \\x1b[31m", ("no \x1b[31m",))


def test_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("[red]x[/red] :warning:", line("[bold]\x1b[1m"))
    assert capsys.readouterr().out == "[red]x[/red] :warning: [bold]\\x1b[1m\n"
    assert printable("ä b–c 数") == "ä b–c 数"
