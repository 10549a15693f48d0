"""The whole way: an unmodified script is traced, advice is asked for, and a better file is written from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import run_hyperslab

netcdf = pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine != "x86_64", reason="traced on Linux on x86-64 only"
    ),
]
SCRIPTS = {
    "netCDF4": """
import sys
import netCDF4
with netCDF4.Dataset(sys.argv[1]) as file:
    series = [float(file["t2m"][:, row, row + 5].sum()) for row in range(0, 30, 3)]
    print(series, float(file["t2m"][7].max()), file["t2m"].units)
""",
    "h5py": """
import sys
import h5py
with h5py.File(sys.argv[1]) as file:
    series = [float(file["t2m"][:, row, row + 5].sum()) for row in range(0, 30, 3)]
    print(series, float(file["t2m"][7].max()), file["t2m"].attrs["units"])
""",
}


def command(*words: object) -> str:
    done = run_hyperslab(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(*words: object) -> str:
    """What a program prints."""
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def _without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find the filters that they bring themselves. netCDF4, which this process has imported, sets the path."""
    monkeypatch.delenv("HDF5_PLUGIN_PATH", raising=False)


@pytest.fixture
def maps_of_a_year(tmp_path: Path) -> Path:
    path = tmp_path / "t2m.nc"
    with netcdf.Dataset(path, "w") as file:
        for name, length in (("time", 365), ("lat", 30), ("lon", 60)):
            file.createDimension(name, length)
        made = file.createVariable("t2m", "f4", ("time", "lat", "lon"), chunksizes=(1, 30, 60), zlib=True)
        made.units = "K"
        made[:] = np.random.default_rng(18).normal(280, 10, (365, 30, 60)).round(1)
    return path


@pytest.mark.parametrize(("library", "options"), [("h5py", ["--verify", 1]), ("netCDF4", [])])
def test_a_script_is_traced_advised_and_served_by_a_better_file(
    library: str, options: list[object], maps_of_a_year: Path, profile_file: Path, tmp_path: Path
) -> None:
    """The path of the README. The same script reads the better file, without us and under `hyperslab run`."""
    script, trace, advice, better = (tmp_path / name for name in ("script.py", "run.trace", "advice.json", "better.nc"))
    script.write_text(SCRIPTS[library])
    said = command("trace", "-o", trace, "--", sys.executable, script, maps_of_a_year)
    shown = json.loads(command("trace", "show", trace, "--profile", profile_file, "--json"))
    assert len(shown["arrays"]) == 1
    named = f"{maps_of_a_year}:t2m"
    command("advise", named, "--trace", trace, "--target", profile_file, *options, "-o", advice)
    (advised,) = json.loads(advice.read_text())["arrays"].values()
    assert advised["format"] == "netcdf4"
    if not options:
        assert advised["chunks"][0] > 1, "series through chunks of a single day decode everything"

    noted = command("convert", maps_of_a_year, better, "--like", advice)
    if library == "h5py":  # netCDF4 has more filters than every libhdf5 has
        assert "its readers need" not in noted
    with netcdf.Dataset(better) as file:
        if not advised["keep"]:
            assert file["t2m"].chunking() == (advised["chunks"] or "contiguous")
    before = printed(script, maps_of_a_year)
    assert printed(script, better) == before
    assert printed("-m", "hyperslab", "run", "--", sys.executable, script, better) == before
    assert before in said


def test_other_codecs_are_advised_only_if_you_ask_and_then_the_need_is_said(
    maps_of_a_year: Path, profile_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, trace = tmp_path / "script.py", tmp_path / "run.trace"
    script.write_text(SCRIPTS["h5py"])
    command("trace", "-o", trace, "--", sys.executable, script, maps_of_a_year)

    def options(codecs: str, attempt: int = 0) -> list[dict[str, Any]]:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / f"{codecs}-{attempt}"))  # codecs are measured anew
        text = command("advise", f"{maps_of_a_year}:t2m", "--trace", trace, "--target", profile_file,
                       "--codecs", codecs, "--json")  # fmt: skip
        (found,) = json.loads(text)["arrays"]
        return list(found["options"])

    own = options("own")
    assert {one["format"] for one in own} == {"netcdf4"}
    assert not any(one["needs"] for one in own)
    # On a busy machine, one measurement may find that no other codec is faster; five do not.
    measured = ([one for one in options("any", attempt) if one["needs"]] for attempt in range(5))
    needed = next(filter(None, measured), [])
    assert needed
    for one in needed:
        assert one["codec"].startswith(("zstd", "blosc"))
        assert "hdf5plugin or `hyperslab run`" in one["needs"]
        assert one["needs"] in one["reason"]
