"""Reading versions needs only what hyperslab always needs; writing says that it needs h5py."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs

# The packages in `dependencies`, and what these need.
CORE = {
    "numpy",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "yaml",
    "_yaml",
    "typer",
    "click",
    "shellingham",
    "rich",
    "pygments",
    "markdown_it",
    "mdurl",
    "annotated_doc",
    "colorama",
    "hyperslab",
}
INSTALLED = {each.name for each in pkgutil.iter_modules() if each.name.isidentifier()}
BLOCKED = sorted(INSTALLED - CORE - set(sys.stdlib_module_names))
PROGRAM = f"""
import sys

BLOCKED = set({" ".join(BLOCKED)!r}.split())

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("versions") / "survey.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("one") as staged:
            staged.create_dataset("x", data=np.arange(100.0), chunks=(10,), compression="gzip")
        with file.stage_version("two") as staged:
            staged["x"][3] = -1
    return path


def python(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM + text, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


def test_reading(path: Path, tmp_path: Path) -> None:
    done = python(
        """
import hyperslab as hs, numpy as np
from pathlib import Path
path, folder = sys.argv[1:]
with hs.open(path, version="one") as one, hs.open(path, version=0) as two:
    assert one["x"][3] == 3 and two["x"][3] == -1
with hs.VersionedFile(path) as file:
    assert file.versions == ["one", "two"] and file.current_version == "two"
    assert file.table["two"].parent == "one"
    assert file["one"]["x"][:5].tolist() == [0, 1, 2, 3, 4]
    assert list(file.diff("one", "two").arrays) == ["x"]
    assert sorted(entry.name for entry in file.log()) == ["one", "two"]
    file.stats()
    assert file.verify().damage_count == 0
    file.export("one", Path(folder) / "one.json")
    for target, lacking in {"one.h5": "hyperslab[hdf5]", "one.zarr": "hyperslab[zarr]"}.items():
        try:
            file.export("one", Path(folder) / target)
        except hs.errors.MissingLibrary as error:
            assert f"pip install '{lacking}'" in str(error), error
        else:
            raise AssertionError(target)
for write in (
    lambda: hs.VersionedFile(path, "r+"),
    lambda: hs.VersionedFile(path, "w"),
    lambda: __import__("hyperslab.versions", fromlist=["repair"]).repair(path, folder + "/repaired.h5"),
):
    try:
        write()
    except hs.errors.MissingLibrary as error:
        assert "needs h5py: pip install 'hyperslab[hdf5]'" in str(error), error
    else:
        raise AssertionError("written without h5py")
assert "h5py" not in sys.modules
""",
        path,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert hs.VersionedFile(path).versions == ["one", "two"]
