"""After a plain `pip install hyperslab`, every command works, or says at once which extra it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.cli.commands import ENTRIES

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[hdf5]'")
PROGRAM = Path(__file__).parent / "plain_install.py"
# The exit status, and a part of what is said.
COMMANDS: dict[str, tuple[int, str]] = {
    "--help": (0, "Commands"),
    "--version": (0, "hyperslab 0"),
    "info a.h5": (0, "temp"),
    "info a.h5 --json": (0, '"arrays"'),
    "info nosuch.h5": (2, "nosuch.h5: check the path"),
    "read a.h5 temp 0,:3": (0, "[0. 1. 2.]"),
    "read a.h5:temp 0,:3 --json": (0, "[0.0, 1.0, 2.0]"),
    "read a.h5 tmp": (2, "did you mean '/temp'?"),
    "read a.h5 temp -o t.npy": (0, ""),
    "verify a.h5": (0, "ok"),
    "index a.h5 -o a.hs": (0, "a.hs"),
    "index a.h5 -o a.json": (0, "a.json"),
    "index a.h5 -o a.parquet": (2, "pip install 'hyperslab[report]'"),
    "index a.h5 -o b.hs --scheduler localhost:1": (2, "pip install 'hyperslab[dask]'"),
    "convert a.h5 b.h5": (2, "pip install 'hyperslab[hdf5]'"),
    "convert a.h5 b.nc": (2, "pip install 'hyperslab[hdf5]'"),
    "convert a.h5 b.zarr": (2, "pip install 'hyperslab[zarr]'"),
    "convert a.h5 b2.zarr --format zarr2": (0, "b2.zarr"),
    "formats": (0, "pip install 'hyperslab[formats]'"),
    "formats fits": (0, "pip install 'hyperslab[fitsio-gpl]' (fitsio has the GPL)"),
    "formats netcdf4": (0, "pip install 'hyperslab[netcdf]'"),
    "studies": (0, "hyperslab bench"),
    "studies --schema": (0, "{"),
    "studies mine": (0, "mine"),
    "bench": (2, "pip install 'hyperslab[report]'"),
    "bench --data a.h5:temp": (2, "pip install 'hyperslab[report]'"),
    "report run": (2, "pip install 'hyperslab[report]'"),
    "compare run other": (2, "run"),
    "calibrate --help": (0, "calibrate"),
    "predict a.h5:temp": (2, "calibrate"),
    "predict work.yaml --layout 10x10 --figure f.svg": (2, "pip install 'hyperslab[report]'"),
    "advise a.h5:temp --like maps": (2, "calibrate"),
    "advise a.h5:temp --trace run.trace": (2, ""),
    "evaluate": (2, "pip install 'hyperslab[report]'"),
    "evaluate --published cori": (0, ""),
    "trace -- true": (2, "pip install 'hyperslab[report]'"),
    "trace show run.trace": (2, "run.trace"),
    "run --help": (0, "hyperslab run"),
    "lab --help": (0, "serve-striped"),
    "versions log survey.h5": (0, "two"),
    "versions show survey.h5": (0, "x"),
    "versions show survey.h5 onee": (2, "did you mean 'one'?"),
    "versions diff survey.h5 one two": (0, "x"),
    "versions diff survey.h5 one two --figure f.png": (2, "pip install 'hyperslab[report]'"),
    "versions stats survey.h5": (0, "x"),
    "versions verify survey.h5": (0, ""),
    "versions export survey.h5 one -o one.json": (0, "one.json"),
    "versions export survey.h5 one -o one.h5": (2, "pip install 'hyperslab[hdf5]'"),
    "versions export survey.h5 one -o one.zarr": (2, "pip install 'hyperslab[zarr]'"),
    "versions export survey.h5 one -o one.parquet": (2, "pip install 'hyperslab[report]'"),
    "versions delete survey.h5 one --yes": (2, "pip install 'hyperslab[hdf5]'"),
    "versions repair survey.h5 -o r.h5": (2, "pip install 'hyperslab[hdf5]'"),
    "completion bash": (0, "complete"),
}  # fmt: skip
# They have no outcome of their own without a calibrated machine or a network namespace.
HELP_ONLY = {"calibrate", "lab", "run"}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    folder = tmp_path_factory.mktemp("plain")
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("temp", data=np.arange(200, dtype="f4").reshape(10, 20), chunks=(5, 20), compression="gzip")
    with hs.VersionedFile(folder / "survey.h5", "w") as versions:
        with versions.stage_version("one") as staged:
            staged.create_dataset("x", data=np.arange(100.0), chunks=(10,), compression="gzip")
        with versions.stage_version("two") as staged:
            staged["x"][3] = -1
    (folder / "work.yaml").write_text("array: {shape: [100, 100], dtype: f4}\nreads: [{rows: 1}]\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(Path(hs.__file__).parents[1])}
    environment |= {"COLUMNS": "200", "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    done = subprocess.run([sys.executable, str(PROGRAM), str(folder)], input="\n".join(COMMANDS), env=environment,
                          capture_output=True, text=True, timeout=200)  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(COMMANDS), done.stderr
    return {one["command"]: (one["status"], one["said"]) for one in found}


@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_or_names_the_extra(command: str, said: dict[str, tuple[int, str]]) -> None:
    status, text = said[command]
    assert "Traceback" not in text, text
    assert (status, COMMANDS[command][1] in text) == (COMMANDS[command][0], True), text
    if status:
        assert len(text.strip().splitlines()) == 1, text


def test_every_command_is_tried() -> None:
    tried = {command.split()[0] for command in COMMANDS}
    assert set(ENTRIES) <= tried
