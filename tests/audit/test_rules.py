"""Each fault is found in a file that has it and in no good one; the commands that are named remedy it."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import audited_files
import h5py
import numpy as np
import pytest

from command_line import run_hyperslab
from hyperslab.audit.distance import Distance
from hyperslab.audit.file_audit import FileAudit
from hyperslab.audit.judging import Question, audit_file
from hyperslab.audit.remedies import commands
from hyperslab.chunk_grid import ENOUGH_NBYTES, MOST_GROWN_NBYTES, chunks_for_cloud

Kept = Callable[..., Path]
GRADES = {
    "good": "good", "small-chunks": "poor", "scattered-metadata": "slow", "cut-coordinates": "good",
    "foreign-filters": "fair", "tiny-arrays": "slow", "unreadable": "unreadable", "damaged": "unreadable",
}  # fmt: skip


@pytest.mark.parametrize("kind", audited_files.MAKERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_fault_is_found_where_it_was_made(kept: Kept, kind: str, seed: int) -> None:
    found = audit_file(str(kept(kind, seed)), Question())
    kinds = {fault.kind for fault in found.faults}
    assert (kind in kinds) == (kind != "good"), found
    if kind == "good":
        assert not kinds
    assert found.grade == GRADES[kind]


@pytest.mark.parametrize("kind", ["small-chunks", "scattered-metadata", "cut-coordinates", "foreign-filters"])
def test_the_commands_that_it_names_remedy_the_fault(tmp_path: Path, kind: str) -> None:
    path = audited_files.drawn(tmp_path, kind)
    before = audit_file(str(path), Question())
    assert before.remedy is not None
    for command in before.remedy.commands:
        program, *arguments = shlex.split(command)
        assert program == "hyperslab"
        done = run_hyperslab(*arguments)
        assert done.returncode == 0, done.stderr
    after = audit_file(shlex.split(before.remedy.commands[-1])[3], Question(require="cloud"))
    assert (after.grade, after.faults, after.unmet) == ("good", (), ())
    assert after.request_count == 1
    assert after.seconds is not None
    assert before.seconds is not None
    # What is saved was predicted: requests and bytes are counted in both, and chunks that were not yet written guessed.
    assert before.seconds - after.seconds == pytest.approx(before.remedy.saved_seconds, rel=0.25, abs=0.05)


def test_names_are_quoted_as_a_shell_reads_them(tmp_path: Path) -> None:
    for name in ("two words.nc", "it's.nc", "new\nline.nc", "tab\tand \\.nc", "\x1b[31m.nc", "über.nc"):
        (line,) = commands(name, relayout=True)
        assert line.isprintable()
        words = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True).stdout
        assert words.decode().split("\0")[2] == name


@pytest.mark.parametrize("seed", range(20))
def test_grown_chunks_are_large_enough_and_inside_the_array(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(1, 3000, random.integers(1, 4)))
    chunks = tuple(int(random.integers(1, n + 1)) for n in shape)
    width = int(random.choice([1, 2, 4, 8]))
    grown = chunks_for_cloud(shape, chunks, width)
    nbytes, whole = int(np.prod(grown)) * width, int(np.prod(shape)) * width
    assert all(1 <= new <= length for new, length in zip(grown, shape, strict=True))
    assert nbytes <= MOST_GROWN_NBYTES
    assert nbytes >= min(ENOUGH_NBYTES // 2, whole)


def test_a_round_waits_for_the_one_before_it_and_its_requests_do_not() -> None:
    far = Distance(0.1, 1e6)
    assert far.seconds(0, 0) == 0
    assert far.seconds(1, 500_000) == pytest.approx(0.6)
    assert far.seconds(32, 0) == pytest.approx(0.1)
    assert far.seconds(33, 0) == pytest.approx(0.2)
    assert far.seconds(5, 0, round_count=3) == pytest.approx(0.3)


def test_what_was_found_comes_back_from_json(kept: Kept) -> None:
    for kind in audited_files.MAKERS:
        found = audit_file(str(kept(kind)), Question(require="cloud"))
        assert FileAudit.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_chunks_of_four_mebibytes_are_large_enough_however_few_bytes_are_stored(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "zeros.h5", "w") as made:
        made.create_dataset("x", data=np.zeros((8, 1024, 1024), "f4"), chunks=(1, 1024, 1024), compression="gzip")
    assert audit_file(str(tmp_path / "zeros.h5"), Question(require="cloud")).unmet == ()
