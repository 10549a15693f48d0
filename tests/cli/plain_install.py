"""A process in which only what `pip install hyperslab` brings can be imported, and which runs many commands in turn.

`python plain_install.py FOLDER` runs COMMANDS in a folder where `make_files` has made the files. It prints one line of
JSON for each: the exit status, and what the command printed. A command that ends in a traceback has the status -1.
tests/matrix/run.py runs it in environments that have nothing else.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
import traceback
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import numpy as np

# The packages in `dependencies`, and what these need.
CORE = {
    "numpy", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection", "yaml", "_yaml",
    "typer", "click", "shellingham", "rich", "pygments", "markdown_it", "mdurl", "annotated_doc", "colorama",
    "hyperslab",
}  # fmt: skip


# The exit status, and a part of what is said.
COMMANDS: dict[str, tuple[int, str]] = {
    "--help": (0, "Look at files"),
    "--version": (0, "hyperslab 0"),
    "info a.h5": (0, "temp"),
    "info a.h5 --json": (0, '"arrays"'),
    "info nosuch.h5": (2, "nosuch.h5: check the path"),
    "read a.h5 temp 0,:3": (0, "[0. 1. 2.]"),
    "read a.h5:temp 0,:3 --json": (0, "[0.0, 1.0, 2.0]"),
    "read a.h5 tmp": (2, "did you mean '/temp'?"),
    "read a.h5 temp -o t.npy": (0, ""),
    "verify a.h5": (0, "ok"),
    "audit a.h5": (0, "a.h5: good"),
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


class Blocked:
    """A finder that says of all other packages that they are not installed."""

    def __init__(self) -> None:
        self.names = frozenset(packages_distributions()) - CORE - sys.stdlib_module_names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run(words: list[str]) -> tuple[int, str]:
    from hyperslab.cli import main

    out = io.StringIO()
    sys.argv = ["hyperslab", *words]
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
            status = -1
    return status, out.getvalue()


def make_files(folder: Path) -> None:
    """The files of the commands. This takes h5py, so another Python does it."""
    import h5py

    import hyperslab as hs

    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("temp", data=np.arange(200, dtype="f4").reshape(10, 20), chunks=(5, 20), compression="gzip")
    with hs.VersionedFile(folder / "survey.h5", "w") as versions:
        with versions.stage_version("one") as staged:
            staged.create_dataset("x", data=np.arange(100.0), chunks=(10,), compression="gzip")
        with versions.stage_version("two") as staged:
            staged["x"][3] = -1
    (folder / "work.yaml").write_text("array: {shape: [100, 100], dtype: f4}\nreads: [{rows: 1}]\n")


def environment(folder: Path) -> dict[str, str]:
    """An environment in which no store profile of this machine is found."""
    around = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "COLUMNS": "200"}
    return around | {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}


def fault(command: str, status: int, said: str) -> str | None:
    """What is wrong with the outcome of a command."""
    expected, part = COMMANDS[command]
    if "Traceback" in said:
        return f"a traceback: {said[-300:]}"
    if status != expected or part not in said:
        return f"status {status}, expected {expected} and {part!r}: {said[-300:]}"
    if status and len(said.strip().splitlines()) != 1:
        return f"more than a line: {said}"
    return None


def main() -> None:
    sys.meta_path.insert(0, Blocked())
    os.chdir(sys.argv[1])
    for command in COMMANDS:
        status, said = run(shlex.split(command))
        print(json.dumps({"command": command, "status": status, "said": said}), flush=True)


if __name__ == "__main__":
    main()
