"""The documentation is true: its commands run, its studies load, its generated pages are what the code says."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def commands(page: Path) -> list[str]:
    lines = [line.strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("hyperslab ")]


def make_files_that_readers_have(directory: Path) -> None:
    """The files that the pages speak of as the reader's own."""
    netcdf = pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    import numpy as np

    with netcdf.Dataset(directory / "ocean.nc", "w") as made:
        for name, length in (("time", 12), ("lat", 20), ("lon", 30)):
            made.createDimension(name, length)
        made.createVariable("sst", "f4", ("time", "lat", "lon"))[:] = np.arange(7200.0).reshape(12, 20, 30)
    zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    zarr.create_group(directory / "ocean.zarr").create_array("sst", data=np.arange(7200.0).reshape(12, 20, 30))
    for year in ("2019", "2020"):
        shutil.copy(directory / "ocean.nc", directory / f"{year}.nc")
    for month, scale in ((1, 0.01), (2, 0.02)):
        with netcdf.Dataset(directory / f"sst-{month}.nc", "w") as made:
            for name, length in (("time", None), ("lat", 20), ("lon", 30)):
                made.createDimension(name, length)
            made.createVariable("time", "f8", ("time",)).units = f"days since 2020-{month:02d}-01"
            made["time"][:] = np.arange(29 + month % 2 * 2)
            made.createVariable("sst", "i2", ("time", "lat", "lon")).scale_factor = scale
            made["sst"][:] = np.zeros((29 + month % 2 * 2, 20, 30))
    with netcdf.Dataset(directory / "depth.nc", "w") as made:
        made.createDimension("lat", 20)
        made.createVariable("depth", "f4", ("lat",))[:] = np.arange(20)
    make_versions(directory / "survey.h5")
    for page in PAGES:
        for text in blocks(page, "python"):
            if program := re.match(r"# (\w+\.py)\n", text):
                (directory / program[1]).write_text(text)
        for text in blocks(page, "yaml"):
            named = re.search(r"^(?:name|FILE_NAME): (\S+)", text, flags=re.MULTILINE)
            if named:
                (directory / f"{named[1]}.yaml").write_text(text)


def make_versions(path: Path) -> None:
    pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    import numpy as np

    import hyperslab as hs

    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("march") as version:
            version.create_dataset("depth", data=np.arange(10_000.0), chunks=(1000,), compression="gzip")
        with file.stage_version("april") as version:
            version["depth"][20:25] = -1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_command_of_the_pages_runs(tmp_path) -> None:
    """In the order of the pages, in one directory, as a reader would."""
    make_files_that_readers_have(tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = 0
    for page in PAGES:
        for command in commands(page):
            words = shlex.split(command, comments=True)
            done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
            assert done.returncode == 0, f"{page.name}: {command}\n{done.stderr}"
            ran += 1
    assert ran >= 6


def test_every_python_example_runs(tmp_path, monkeypatch) -> None:
    make_files_that_readers_have(tmp_path)
    monkeypatch.chdir(tmp_path)
    examples = [code for page in PAGES for code in blocks(page, "python")]
    assert examples
    for code in examples:
        exec(compile(code, "example", "exec"), {})


def test_generated_pages_are_what_the_code_says() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    for path, content in made.items():
        assert path.read_text() == content, f"{path.name} is out of date: make docs"


def test_the_make_targets_that_the_readme_names_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for named in re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert named in targets


def test_every_sentence_on_security_has_its_test() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.endswith("| test |")]
    assert all(re.search(r"`tests/[\w/]+\.py::test_\w+` \|$", row) for row in rows)
    assert len(named) >= len(rows) > 0
    for path, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), flags=re.MULTILINE), f"{path}::{name}"
