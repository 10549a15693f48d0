"""Files with wrong bytes: reading and repairing raise named errors in bounded time, and a repaired file is right."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL
from test_crashes import commit, state_of, text
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import HyperslabError
from hyperslab.versions import repair

TRIALS = 3000 if ALL else 12
MOST_SECONDS = 20
MOST_NBYTES = 1 << 28  # whoever asks for more gets more, and may use the memory


def damaged(good: bytes, rng: random.Random) -> bytes:
    """Change a few bytes, lose or move a sector, or cut off the end."""
    data = bytearray(good)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(data))
        kind = rng.choice(["bit", "byte", "byte", "word", "sector", "copy", "cut"])
        if kind == "bit":
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "byte":
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == "word":
            data[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), rng.randbytes(8), (1 << 40).to_bytes(8, "little")])
        elif kind == "sector":
            data[at // 512 * 512 : at // 512 * 512 + 512] = bytes(512)
        elif kind == "copy":
            source = rng.randrange(len(data)) // 512 * 512
            data[at // 512 * 512 : at // 512 * 512 + 512] = data[source : source + 512]
        elif rng.random() < 0.2:
            del data[at:]
            if len(data) < 8:
                break
    return bytes(data)


def read_all(path: Path) -> None:
    with hs.VersionedFile(path, chunk_cache_nbytes=0) as file:
        for name in file:
            try:
                for array in file[name].walk():
                    if array.nbytes < MOST_NBYTES:
                        array[...]
                    dict(array.attrs.items())
            except HyperslabError:
                continue


@pytest.mark.slow
@pytest.mark.parametrize("library", ["ours", "theirs"])
def test_damaged_files(tmp_path: Path, library: str) -> None:
    path, new = tmp_path / "v.h5", tmp_path / "new.h5"
    with h5py.File(path, "w") as file:
        versions: Any = hs.VersionedFile(file) if library == "ours" else VersionedHDF5File(file)
        for number in range(3):
            commit(versions, number)
    good = path.read_bytes()
    counts = {"whole": 0, "in part": 0, "nothing": 0}
    for trial in range(TRIALS):
        rng = random.Random(f"{library} {trial}")
        path.write_bytes(damaged(good, rng))
        new.unlink(missing_ok=True)
        start = time.process_time()  # other programs may run too
        with suppress(HyperslabError):
            read_all(path)
        try:
            found = repair(path, new)
            counts["whole" if found.is_complete else "in part"] += 1
        except HyperslabError:
            counts["nothing"] += 1
            found = None
        assert time.process_time() - start < MOST_SECONDS, f"trial {trial}"
        if found is not None:
            check(new, trial)
    print(library, counts)


def check(path: Path, trial: int) -> None:
    """Elements of proved chunks are right; what has no proof (a shape, a name, a lost mapping) may be wrong."""
    with hs.VersionedFile(path) as file:
        for name in file:
            if not (name[:1] == "v" and name[1:].isdigit() and int(name[1:]) < 3):
                continue
            state = state_of(int(name[1:]))
            for array in file[name].walk():
                inner = array.name.split(f"/{name}/", 1)[1]
                if inner in state and array.shape == state[inner].shape and array.dtype == state[inner].dtype:
                    stored = text(array[...])
                    wrong = np.flatnonzero(stored != text(state[inner]))
                    fill = "" if stored.dtype == object else 0
                    assert (stored[wrong] == fill).all() or inner == "words", f"trial {trial}: {name} {inner}"
