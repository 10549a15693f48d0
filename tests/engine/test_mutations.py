"""Files with one thing in their metadata changed: never other values than h5py's, never a hang or a crash.

`HYPERSLAB_MUTANTS=2000` tries so many of each file instead of a few.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

import h5py
import mutants
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile

MUTANTS = int(os.environ.get("HYPERSLAB_MUTANTS", "5"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return mutants.make(tmp_path_factory.mktemp("mutants"))


def test_the_checksum_is_lookup3() -> None:
    assert mutants.lookup3(b"Four score and seven years ago") == 0x17770551


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_mutants_are_read_as_h5py_reads_them(samples: list[Path], number: int) -> None:
    path = samples[number]
    sample, names = mutants.Sample(path), mutants.names_of(path)
    ours, theirs = mutants.compared(path, names)
    assert ours == theirs
    assert set(ours) == set(names), "the intact file is read wholly and alike"
    counts = {"alike": 0, "only theirs": 0, "only ours": 0, "h5py died": 0}
    troubles: list[str] = []
    for seed in range(MUTANTS):
        mutant = path.with_name("mutant.h5")
        mutant.write_bytes(sample.mutant(seed))
        ours, theirs = mutants.compared(mutant, names)
        if isinstance(ours, str):
            troubles.append(f"{path.name} {seed}: ours {ours}")
        elif isinstance(theirs, str):
            counts["h5py died"] += 1
        else:
            both = ours.keys() & theirs.keys()
            different = [
                f"{name}: ours {ours[name]}, h5py's {theirs[name]}" for name in both if ours[name] != theirs[name]
            ]
            troubles += [f"{path.name} {seed}: {each}" for each in different]
            counts["alike"] += len(both) - len(different)
            counts["only ours"] += len(ours.keys() - both)
            counts["only theirs"] += len(theirs.keys() - both)
    print(path.name, counts)
    assert not troubles, "\n".join(troubles)


@pytest.mark.parametrize(("shape", "chunks"), [((40,), (4,)), ((12, 10), (4, 5)), ((1200,), (4,)), ((60, 50), (4, 4))])
def test_chunks_are_found_where_libhdf5_finds_them(
    tmp_path: Path, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    """It looks for a chunk between two keys, of which the last in a node belongs to no chunk."""
    path, mutant = tmp_path / "good.h5", tmp_path / "mutant.h5"
    data = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=chunks, maxshape=(None,) * len(shape), fillvalue=-1)
    good = path.read_bytes()
    outcomes = {"same": 0, "damaged": 0}
    lengths = (*chunks, 4)
    for key in mutants.keys(good, len(shape)):
        for axis, length in enumerate(lengths):
            place = key + 8 * axis
            old = struct.unpack_from("<Q", good, place)[0]
            for word in {0, old - 1, old - length, old + length, old + 3 * length, 2**63} - {old}:
                mutant.write_bytes(mutants.with_word(good, place, word))
                theirs = last = None
                with h5py.File(mutant) as file, suppress(OSError):
                    theirs, last = file["x"][...], file["x"][-1:]
                for selection, expected in ((np.s_[...], theirs), (np.s_[-1:], last)):
                    try:
                        ours = hs.open(mutant)["x"][selection]
                    except DamagedFile:
                        outcomes["damaged"] += 1
                        continue
                    assert expected is not None, "libhdf5 refuses it"
                    np.testing.assert_array_equal(ours, expected, f"{word} in place of {old} at {place}")
                    outcomes["same"] += 1
    assert min(outcomes.values()) > 5, outcomes
