"""C programs and libraries that tests compile against the libhdf5 of the system."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

DECLARED = r"""
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    long H5Fopen(const char *, unsigned, long), H5Dopen2(long, const char *, long), H5Dget_type(long);
    int H5open(void), H5close(void), H5Fclose(long), H5Dclose(long);
    int H5Dread(long, long, long, long, long, void *);
    int H5Dread_async(const char *, const char *, unsigned, long, long, long, long, long, void *, long);
    int H5Dread_multi(size_t, long *, long *, long *, long *, long, void **);
    extern long H5T_NATIVE_INT_g, H5T_NATIVE_FLOAT_g, H5T_NATIVE_DOUBLE_g;
"""


def system_libhdf5(kind: str = "serial") -> Path:
    """The libhdf5 of the system. Without one, or without a compiler, the test is skipped."""
    found = sorted(Path("/usr/lib").glob(f"*/libhdf5_{kind}.so.*"))
    if not found or shutil.which("gcc") is None:
        pytest.skip("no C compiler, or no libhdf5 of the system: tests/system-packages.txt")
    return found[0]


def wheel_libhdf5() -> list[object]:
    """What a program is linked to if it needs HDF5 1.14: the libhdf5 of h5py's wheel."""
    libraries = sorted((Path(h5py.__file__).parents[1] / "h5py.libs").glob("libhdf5-*.so*"))
    if shutil.which("gcc") is None or not libraries or h5py.version.hdf5_version_tuple < (1, 14):
        pytest.skip("no C compiler, or no wheel of h5py with HDF5 1.14")
    return [libraries[0], f"-Wl,-rpath,{libraries[0].parent}", "-Wl,--allow-shlib-undefined"]


def compressed_file(path: Path, names: str = "x", seed: int = 1) -> Path:
    """A file with arrays of 300 rows and 400 columns of `int`, in chunks of 50 rows."""
    random = np.random.default_rng(seed)
    with h5py.File(path, "w") as made:
        for name in names:
            values = random.integers(0, 99, (300, 400), "i4")
            made.create_dataset(name, data=values, chunks=(50, 400), compression="gzip")
    return path


def compiled(folder: Path, name: str, source: str, *options: object) -> Path:
    """A program; a library if the name says so."""
    made, written = folder / name, folder / f"{name}.c"
    written.write_text(DECLARED + source)
    kind = ["-shared", "-fPIC"] if ".so" in name else []
    subprocess.run(["gcc", "-w", "-O2", *kind, "-o", made, written, *map(str, options)], check=True)
    return made


def alone(*words: object) -> subprocess.CompletedProcess[bytes]:
    """Run a program without us."""
    return subprocess.run([*map(str, words)], capture_output=True, timeout=240)


def netcdf_libhdf5() -> Path:
    """The libhdf5 of netCDF4's wheel, which is not made for threads. Without the wheel, the test is skipped."""
    module = pytest.importorskip("netCDF4")
    found = sorted((Path(module.__file__).parents[1] / "netcdf4.libs").glob("libhdf5-*.so*"))
    if not found:
        pytest.skip("netCDF4 is no wheel")
    return found[0]
