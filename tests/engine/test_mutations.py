"""Files with one thing in their metadata changed: never other values than h5py's, never a hang or a crash.

`HYPERSLAB_MUTANTS=2000` tries so many of each file instead of a few.
"""

from __future__ import annotations

import os
from pathlib import Path

import mutants
import pytest

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
