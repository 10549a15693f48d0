"""The program that test_random_reads.py runs with and without us: it does the steps of a list in JSON, and prints.

It works on a copy of the file, because it may change it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5s, h5t

CHANGE = "import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f: f[sys.argv[2]][3:5] = f[sys.argv[2]][5:7]"


def index(words: list[Any]) -> Any:
    """An index of NumPy: numbers, `[start, stop, step]` for slices, `{"list": [...]}`."""
    return tuple(
        slice(*word) if isinstance(word, list) else np.array(word["list"]) if isinstance(word, dict) else word
        for word in words
    )


def space(shape: list[int], said: dict[str, Any] | None) -> Any:
    """A dataspace with a selection: slabs that are combined, or points."""
    made = h5s.create_simple(tuple(shape))
    if said is None:
        return made
    if "points" in said:
        made.select_elements(np.array(said["points"], "u8").reshape(-1, len(shape)))
    for number, slab in enumerate(said.get("slabs", [])):
        start, count, stride, block = map(tuple, slab)
        made.select_hyperslab(start, count, stride, block, op=h5s.SELECT_SET if number == 0 else h5s.SELECT_OR)
    if "offset" in said:
        made.offset_simple(tuple(said["offset"]))
    return made


def fingerprint(found: Any) -> str:
    """What was read, in a line."""
    found = np.asarray(found)
    data = repr(found.tolist()).encode() if found.dtype.hasobject else np.ascontiguousarray(found).tobytes()
    return f"{hashlib.sha256(data).hexdigest()[:20]} {found.shape} {found.dtype}"


class Program:
    """The state of the program: an open file, and arrays that stay open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = h5py.File(path, "r")

    def do(self, step: list[Any]) -> str:
        """Do one step, and say what came of it."""
        try:
            return str(getattr(self, step[0])(*step[1:]))
        except Exception as error:
            # Addresses and times differ from run to run.
            said = re.sub(r"time = .*?,|0x[0-9a-f]+|descriptor = \d+", "", str(error).split("\n")[0])
            return f"{type(error).__name__}: {said.replace(self.path, 'PATH')}"

    def read(self, name: str, words: list[Any], kind: str | None) -> str:
        array = self.file[name]
        return fingerprint((array if kind is None else array.astype(kind))[index(words)])

    def field(self, name: str, words: list[Any], field: str) -> str:
        return fingerprint(self.file[name].fields(field)[index(words)])

    def direct(self, name: str, words: list[Any]) -> str:
        array, chosen = self.file[name], index(words)
        out = np.full([length + 3 for length in array.shape], 7).astype(array.dtype)
        shape = array[chosen].shape
        array.read_direct(out, chosen, tuple(slice(2, 2 + length) for length in shape))
        return fingerprint(out)

    def low(self, name: str, chosen: Any, memory: str, kind: str | None) -> str:
        """`H5Dread` with dataspaces of our choice, into memory whose every byte is compared."""
        array = self.file[name].id
        dtype = np.dtype(f"V{array.get_type().get_size()}" if kind is None else kind)
        file_space = h5s.ALL if chosen is None else space(list(array.shape), chosen)
        count = int(np.prod(array.shape)) if chosen is None else file_space.get_select_npoints()
        shape, selected = {
            "all": (list(array.shape), None),
            "flat": ([count], None),
            "behind": ([count + 5], {"slabs": [[[2], [1], [1], [max(count, 1)]]]}),
            "gaps": ([count, 3, 2], {"slabs": [[[0, 1, 0], [max(count, 1), 1, 1], [1, 1, 1], [1, 1, 1]]]}),
            "strided": ([3 * count + 1], {"slabs": [[[1], [max(count, 1)], [3], [1]]]}),
            "points": ([count], {"points": list(range(count))[::-1]}),
            "wrong": ([count + 1], None),
        }[memory]
        out = np.frombuffer(bytearray(b"\xa5" * (int(np.prod(shape)) * dtype.itemsize)), dtype).reshape(shape)
        memory_space = h5s.ALL if memory == "all" else space(shape, selected)
        failed = ""
        try:
            array.read(memory_space, file_space, out, array.get_type() if kind is None else h5t.py_create(dtype))
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
        return f"{fingerprint(out.view(np.dtype(f'V{dtype.itemsize}')))} {failed}"

    def closed(self, name: str) -> str:
        array = self.file[name].id
        out = np.zeros(array.shape, array.dtype)
        array._close()
        array.read(h5s.ALL, h5s.ALL, out)
        return fingerprint(out)

    def netcdf(self, name: str, words: list[Any]) -> str:
        """Two libhdf5 read one file."""
        import netCDF4

        path = f"{sys.argv[1].removesuffix('.h5')}.nc"
        with netCDF4.Dataset(path) as other, h5py.File(path) as file:
            other.set_auto_maskandscale(False)
            one, two = other[name][index(words)], file[name][index(words)]
            return f"{fingerprint(one)} {fingerprint(two)} {fingerprint(other[name][:])}"

    def threads(self, steps: list[Any]) -> str:
        with ThreadPoolExecutor(3) as pool:
            return " | ".join(pool.map(self.do, steps))

    def forked(self, steps: list[Any]) -> str:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            for step in steps:
                print(self.do(step), flush=True)
            os._exit(0)
        return f"child {os.waitpid(child, 0)[1]}"

    def reopen(self) -> str:
        self.file.close()
        self.file = h5py.File(self.path, "r")
        return "reopened"

    def rewrite(self, name: str, how: str) -> str:
        """Change the file, here or in another process, between closing and opening it."""
        self.file.close()
        try:
            if how == "elsewhere":
                done = subprocess.run([sys.executable, "-c", CHANGE, self.path, name], capture_output=True)
                return f"changed {done.returncode}"
            with h5py.File(self.path, "r+") as writer:
                writer[name][3:5] = writer[name][5:7]
                return fingerprint(writer[name][...])
        finally:
            self.file = h5py.File(self.path, "r")

    def writing(self, steps: list[Any]) -> str:
        """Work while the file is open for writing."""
        self.file.close()
        self.file = h5py.File(self.path, "r+")
        said = [self.do(step) for step in steps]
        self.file.close()
        self.file = h5py.File(self.path, "r")
        return " | ".join(said)

    def truncated(self, share: float, steps: list[Any]) -> str:
        """Work after the file has lost its end. libhdf5 has read nothing of it yet."""
        self.reopen()
        os.truncate(self.path, int(Path(self.path).stat().st_size * share))
        said = [self.do(step) for step in steps]
        return " | ".join(said)


def main() -> None:
    """Do all steps."""
    path = f"{sys.argv[1]}.copy"
    shutil.copy(sys.argv[1], path)
    program = Program(path)
    try:
        for step in json.loads(sys.argv[2]):
            print(program.do(step))
    finally:
        Path(path).unlink()


main()
