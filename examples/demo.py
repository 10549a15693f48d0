"""`make demo`: read HDF5 files with h5py and with hyperslab, then find the fastest format on this machine.

The second part measures two real fields and a larger generated one. The real ones are monthly sea-surface temperatures
and a century of North American air temperatures, from the NetCDF files of the PyPI package iris-sample-data.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import iris_sample_data
import side_by_side

OUTPUT = Path("demo")
STUDY = """\
# Made by examples/demo.py: arrays like these, on this machine.
name: demo
prefix: demo
title: real and generated fields
formats: ["null", raw, npy, csv, hdf5, hyperslab, netcdf4, netcdf3, zarr2, zarr3, zarr3-sharded, zarrs, tensorstore,
  fits, hdf4, pdb, blosc2, tiledb]
conditions:
  contiguous: {{chunks: contiguous}}
  blosc-zstd: {{chunks: auto, codecs: ["blosc-zstd:3"]}}
operations: [write, read-all, read-time-series, read-map]
caches: [warm]
shape: [1]
cases:
  sea-surface: {{title: sea-surface temperature, data_file: "{samples}/ostia_monthly.nc:surface_temperature"}}
  air: {{title: air temperature of North America, data_file: "{samples}/A1B_north_america.nc:air_temperature"}}
  generated:
    title: generated waves and noise, 16 MiB
    shape: [64, 256, 256]
    data: waves
    operations: [write, read-all, read-time-series]
    caches: [warm, cold]
    formats: ["null", raw, npy, hdf5, hyperslab, netcdf4, netcdf3, zarr2, zarr3, zarr3-sharded, zarrs, tensorstore,
      fits, hdf4, pdb, blosc2, tiledb]
"""


def main() -> int:
    """Show both readers, write and run the study, and put the report into demo/report.html."""
    side_by_side.show()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    study = OUTPUT / "demo.yaml"
    study.write_text(STUDY.format(samples=iris_sample_data.path))
    command = [sys.executable, "-m", "hyperslab", "bench", str(study), "-o", str(OUTPUT), "--trials", "6"]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
