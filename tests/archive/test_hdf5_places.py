"""We find the files that an HDF5 file names where HDF5 finds them: h5py judges, with equal names in all folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from command_line import run_python

READ = """
import json, sys
import h5py, hyperslab as hs
from hyperslab.errors import ReadError

def read(open, path):
    try:
        with open(path) as file:
            return file["x"][...].tolist()
    except (OSError, KeyError, ReadError):
        return None

print(json.dumps([[path, read(h5py.File, path), read(hs.open, path)] for path in sys.argv[1:]]))
"""
PLACES = ("folder", "cwd", "prefix", "second", "real", "folder/sub")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In each folder files of the same name, which contain the number of the folder."""
    root = tmp_path_factory.mktemp("places")
    for number, place in enumerate(PLACES):
        (root / place).mkdir()
        (root / place / "raw.bin").write_bytes(bytes([number]) * 4)
        with h5py.File(root / place / "source.h5", "w") as file:
            file["y"] = np.full(4, number, "u1")
    for name in ("raw.bin", str(root / "none" / "raw.bin"), str(root / "second" / "raw.bin"), "sub/raw.bin"):
        with h5py.File(root / "folder" / f"raw-{len(list((root / 'folder').glob('raw-*')))}.h5", "w") as file:
            file.create_dataset("x", (4,), "u1", external=[(name, 0, 4)])
    for kind, name in product(("virtual", "link"), ("source.h5", str(root / "none" / "source.h5"), "sub/source.h5")):
        with h5py.File(root / "folder" / f"{kind}-{len(list((root / 'folder').glob(kind + '-*')))}.h5", "w") as file:
            if kind == "link":
                file["x"] = h5py.ExternalLink(name, "/y")
            else:
                layout = h5py.VirtualLayout((4,), "u1")
                layout[:] = h5py.VirtualSource(name, "y", (4,))
                file.create_virtual_dataset("x", layout, fillvalue=99)
    return root


VARIABLES = ("HDF5_EXTFILE_PREFIX", "HDF5_VDS_PREFIX", "HDF5_EXT_PREFIX")
PREFIXES = (
    None, "", ".", "{root}/prefix", "{root}/none:{root}/prefix", "${{ORIGIN}}", "${{ORIGIN}}/sub",
    "${{ORIGIN}}/../prefix",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("without", [(), ("folder", "cwd")], ids=["all", "elsewhere"])
def test_files_are_found_where_h5py_finds_them(made: Path, without: tuple[str, ...]) -> None:
    hidden = [made / place / name for place in without for name in ("raw.bin", "source.h5")]
    for path in hidden:
        path.rename(path.with_suffix(".hidden"))
    try:
        found = set()
        for prefix in PREFIXES:
            for path, theirs, ours in answers(made, None if prefix is None else prefix.format(root=made)):
                assert ours == theirs, (prefix, path)
                found.add(tuple(theirs or ()))
        assert len(found) > 2  # files in several folders
    finally:
        for path in hidden:
            path.with_suffix(".hidden").rename(path)


def answers(made: Path, prefix: str | None) -> list[Any]:
    """What h5py and we read, in a process that loads libhdf5 anew, because it reads environment variables only once."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment |= {} if prefix is None else dict.fromkeys(VARIABLES, prefix)
    paths = [str(path) for path in sorted((made / "folder").glob("*-*.h5"))]
    ran = run_python(READ, *paths, modules=("numpy",), cwd=made / "cwd", env=environment)
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout))


def test_a_linked_file_finds_what_lies_beside_the_real_one(made: Path) -> None:
    for kind in ("virtual", "link"):
        real, linked = made / "real" / f"{kind}.h5", made / "linked"
        linked.mkdir(exist_ok=True)
        real.write_bytes((made / "folder" / f"{kind}-0.h5").read_bytes())
        (linked / f"{kind}.h5").symlink_to(real)
        ran = subprocess.run(
            [sys.executable, "-c", READ, str(linked / f"{kind}.h5")],
            cwd="/", capture_output=True, text=True, check=True, env={**os.environ},
        )  # fmt: skip
        [[_, theirs, ours]] = json.loads(ran.stdout)
        assert ours == theirs == [PLACES.index("real")] * 4
