"""After a plain `pip install hyperslab`, every command works, or says at once which extra it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import plain_install
import pytest

import hyperslab
from hyperslab.cli.commands import ENTRIES

pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[hdf5]'")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    folder = tmp_path_factory.mktemp("plain")
    plain_install.make_files(folder)
    around = plain_install.environment(folder) | {"PYTHONPATH": str(Path(hyperslab.__file__).parents[1])}
    program = [sys.executable, plain_install.__file__, str(folder)]
    done = subprocess.run(program, env=around, capture_output=True, text=True, timeout=200)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(plain_install.COMMANDS), done.stderr
    return {one["command"]: (one["status"], one["said"]) for one in found}


@pytest.mark.parametrize("command", plain_install.COMMANDS)
def test_it_works_or_names_the_extra(command: str, said: dict[str, tuple[int, str]]) -> None:
    assert plain_install.fault(command, *said[command]) is None


def test_every_command_is_tried() -> None:
    assert set(ENTRIES) <= {command.split()[0] for command in plain_install.COMMANDS}
