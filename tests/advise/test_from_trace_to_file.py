"""The whole way: an unmodified script is traced, advice is asked for, and a better file is written from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

netcdf = pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")

SCRIPT = """
import sys
import netCDF4
with netCDF4.Dataset(sys.argv[1]) as file:
    series = [float(file["t2m"][:, row, row + 5].sum()) for row in range(0, 30, 3)]
    print(series, float(file["t2m"][7].max()), file["t2m"].units)
"""


def command(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "hyperslab", *map(str, words)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="traced on Linux on x86-64 only")
def test_a_script_is_traced_advised_and_served_by_a_better_file(
    maps_of_a_year: Path, profile_file: Path, tmp_path: Path
) -> None:
    script, trace, advice, better = (tmp_path / name for name in ("script.py", "run.trace", "advice.json", "better.nc"))
    script.write_text(SCRIPT)
    said = command("trace", "-o", trace, "--", sys.executable, script, maps_of_a_year)
    shown = json.loads(command("trace", "show", trace, "--profile", profile_file, "--json"))
    assert len(shown["arrays"]) == 1
    command(
        "advise", f"{maps_of_a_year}:t2m", "--trace", trace, "--target", profile_file, "--keep", "netcdf", "-o", advice
    )
    (advised,) = json.loads(advice.read_text())["arrays"].values()
    assert advised["format"] == "netcdf4"
    assert advised["chunks"][0] > 1, "series through chunks of a single day decode everything"

    command("convert", maps_of_a_year, better, "--like", advice)
    with netcdf.Dataset(better) as file:
        assert file["t2m"].chunking() == advised["chunks"]
    alone = [
        subprocess.run([sys.executable, script, path], capture_output=True, text=True, check=True).stdout
        for path in (maps_of_a_year, better)
    ]
    assert alone[0] == alone[1]
    assert alone[0] in said
