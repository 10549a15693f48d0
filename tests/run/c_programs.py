"""C programs and libraries that tests compile against the libhdf5 of the system."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

DECLARED = r"""
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    long H5Fopen(const char *, unsigned, long), H5Dopen2(long, const char *, long), H5Dget_type(long);
    int H5open(void), H5Fclose(long), H5Dclose(long);
    int H5Dread(long, long, long, long, long, void *);
    extern long H5T_NATIVE_INT_g, H5T_NATIVE_FLOAT_g, H5T_NATIVE_DOUBLE_g;
"""


def system_libhdf5(kind: str = "serial") -> Path:
    """The libhdf5 of the system. Without one, or without a compiler, the test is skipped."""
    found = sorted(Path("/usr/lib").glob(f"*/libhdf5_{kind}.so.*"))
    if not found or shutil.which("gcc") is None:
        pytest.skip("no C compiler, or no libhdf5 of the system: tests/system-packages.txt")
    return found[0]


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
