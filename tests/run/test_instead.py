"""`HYPERSLAB_INSTEAD` names copies that a program opens in the place of its files, for `hyperslab advise --verify`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from run_programs import command

from hyperslab.preloading import preloading

h5py = pytest.importorskip("h5py")

PROGRAM = """
import os, sys, h5py
os.chdir(sys.argv[1])
for name in sys.argv[3:]:
    with h5py.File(name, sys.argv[2]) as file:
        print(file["x"][3])
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for number, name in enumerate(["data/asked.h5", "copy é.h5", "data/other.h5"]):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = np.arange(10) + 100 * number
    (tmp_path / "link.h5").symlink_to("data/asked.h5")
    pairs = [tmp_path / "data" / "asked.h5", tmp_path / "copy é.h5"]
    (tmp_path / "pairs").write_bytes(b"".join(os.fsencode(one) + b"\0" for one in pairs))
    return tmp_path


def printed(files: Path, mode: str, *names: str, **variables: str) -> list[str]:
    library = command.library()
    assert library is not None
    environment = os.environ | {"HYPERSLAB_INSTEAD": str(files / "pairs")} | variables
    line = [sys.executable, "-c", PROGRAM, str(files / "data"), mode, *names]
    done = subprocess.run(line, env=environment | preloading(environment, library), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("is_served", [True, False])
def test_a_copy_is_opened_in_the_place_of_a_file_however_it_is_named(files: Path, is_served: bool) -> None:
    logs = files / "logs"
    logs.mkdir()
    names = ["asked.h5", str(files / "data" / "asked.h5"), "../link.h5", "./../data//asked.h5"]
    found = printed(files, "r", *names, "other.h5", **({} if is_served else {"HYPERSLAB_TRACE_FOLDER": str(logs)}))
    assert found == ["103"] * 4 + ["203"]


def test_a_program_that_may_write_gets_its_own_file(files: Path) -> None:
    assert printed(files, "r+", "asked.h5") == ["3"]


def test_without_a_list_every_file_is_what_it_is(files: Path) -> None:
    (files / "pairs").unlink()
    assert printed(files, "r", "asked.h5", "other.h5") == ["3", "203"]
