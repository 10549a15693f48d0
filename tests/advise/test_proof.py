"""`--verify` runs the traced program itself on converted copies, or says why it replays its calls instead."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_codecs import known_codecs

from hyperslab.advise import rerunning, verifying
from hyperslab.advise.advising import advise
from hyperslab.advise.asking import ask
from hyperslab.advise.formats import encodings_of
from hyperslab.advise.judging import judge
from hyperslab.advise.limits import Limits
from hyperslab.advise.proving import prove
from hyperslab.advise.results import ArrayAdvice
from hyperslab.advise.several import ask_about
from hyperslab.advise.verifying import Verification
from hyperslab.errors import NoSpace, UsageError
from hyperslab.lab.rounds import StopRule
from hyperslab.model.store_profile import StoreProfile
from hyperslab.running.command import library
from hyperslab.running.programs import obstacle
from hyperslab.storage.chain import PLAIN
from hyperslab.storage.layout import StoredLayout
from hyperslab.trace.starting import run_traced

h5py = pytest.importorskip("h5py")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("prepared_workers")

READS = """
import h5py
with h5py.File("data.h5", "{mode}") as file:
    for k in range(0, 40, 4):
        print(file["x"][:, k].sum())
    {more}
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a row in each chunk, in the folder where programs run."""
    elements = np.arange(400 * 40, dtype="i4").reshape(400, 40) % 97
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=elements, chunks=(1, 40), compression="gzip")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rerunning, "PASSES", 1)
    monkeypatch.setattr(verifying, "RULE", StopRule(1, 1))
    return path


def advice_on(data: Path, profile: StoreProfile, text: str) -> ArrayAdvice:
    """The advice on a program with this text, which was traced."""
    ((array, demands),) = ask(f"{data}:x", [(trace_of(data, text), 1.0)], None, None).arrays
    encodings = encodings_of(array, Limits(), profile)
    return advise(array, demands, profile, Limits(), known_codecs(array, encodings), encodings)


def trace_of(data: Path, text: str) -> Path:
    (data.parent / "program.py").write_text(text)
    trace = data.parent / "run.trace"
    done = run_traced([sys.executable, "program.py"], trace, library())
    assert done.trace is not None
    return trace


def proof_of(data: Path, profile: StoreProfile, text: str, **options: Any) -> tuple[ArrayAdvice, Verification]:
    found = advice_on(data, profile, text)
    before = sorted(data.parent.iterdir())
    proof = prove(found, profile, 1, data.parent, library=library(), obstacle=obstacle, **options)
    assert sorted(data.parent.iterdir()) == before, "nothing is left behind"
    return found, proof


needs_library = pytest.mark.skipif(library() is None, reason="no library to preload: crates/hyperslab-preload/build.sh")


@needs_library
def test_the_program_itself_runs_on_the_converted_copies(data: Path, profile: StoreProfile) -> None:
    before = data.stat().st_mtime_ns
    _, proof = proof_of(data, profile, READS.format(mode="r", more=""))
    assert proof.words.startswith("the program itself, `")
    assert "program.py`" in proof.words
    took = {one.option.candidate.title: one.seconds(proof.weights) for one in proof.each if one.reason is None}
    assert len(took) >= 2
    assert all(took.values()), "the reads of each came from its own file"
    assert {one.option.candidate.is_today for one in proof.each if one.reason is None} == {True, False}
    for one in proof.each:  # the seconds of the openings are not among those that are recorded
        price = one.option.price
        assert 0 < price.opening_seconds < price.seconds
        assert one.predicted == price.seconds - price.opening_seconds
        assert one.low <= one.predicted <= one.high
    assert data.stat().st_mtime_ns == before


ALIKE = """
import h5py
for name in ("data.h5", "more.h5"):
    with h5py.File(name) as file:
        for array in ("x", "y"):
            for k in range(0, 40, 4):
                print(file[array][:, k].sum())
"""


@needs_library
def test_arrays_that_are_alike_are_proved_by_the_program_too(data: Path, profile: StoreProfile) -> None:
    """Its calls were replayed, on one of the arrays."""
    with h5py.File(data, "r+") as file:
        file.create_dataset("y", data=file["x"][:] + 1, chunks=(1, 40), compression="gzip")
    for name in ("more.h5", "third.h5"):
        (data.parent / name).write_bytes(data.read_bytes())
    trace = trace_of(data, ALIKE)
    ((array, demands),) = ask_about(["data.h5", "more.h5", "third.h5"], [(trace, 1.0)], None, None).arrays
    assert array.count == 6
    encodings = encodings_of(array, Limits(), profile)
    found = advise(array, demands, profile, Limits(), known_codecs(array, encodings), encodings)
    before = sorted(data.parent.iterdir())
    proof = prove(found, profile, 1, data.parent, library=library(), obstacle=obstacle)
    assert sorted(data.parent.iterdir()) == before
    assert proof.words.startswith("the program itself, `")
    assert proof.weights == [1.0]
    today = next(one for one in proof.each if one.option.candidate.is_today)
    others = [one for one in proof.each if not one.option.candidate.is_today and one.reason is None]
    assert others
    for one in [today, *others]:
        assert one.seconds(proof.weights), "the reads came from the copies of both files"


@needs_library
def test_what_needs_another_program_is_left_out_and_says_so(data: Path, profile: StoreProfile) -> None:
    found = advice_on(data, profile, READS.format(mode="r", more=""))
    larger = replace(found.today, candidate=replace(found.today.candidate, cache_nbytes=1 << 26, cache_slots=521))
    assert rerunning.why_not_run(found, [larger], 1 << 30, library(), obstacle) is None
    proof = rerunning.run_again(found, [found.today, larger], data.parent, str(library()))
    today, other = proof.each
    assert today.seconds(proof.weights)
    assert other.reason is not None
    assert "--replay measures it" in other.reason


@needs_library
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (READS.format(mode="r+", more='file["x"][0, 0] = 5'), "the program writes to the file that it reads"),
        (READS.format(mode="r", more="raise SystemExit(3)"), "the program ended with status 3"),
        (READS.format(mode="r", more="import os; os.utime('data.h5')"), "the program changed its file"),
        (
            "import os\nif os.path.exists('again'): raise SystemExit(4)\nopen('again', 'w').close()"
            + READS.format(mode="r", more=""),
            "the program ended with status 4",
        ),
    ],
    ids=["writes", "fails", "changes", "fails later"],
)
def test_a_program_that_proves_nothing_is_not_run_on_copies(
    data: Path, profile: StoreProfile, text: str, why: str
) -> None:
    found = advice_on(data, profile, text)
    said = rerunning.why_not_run(found, [found.today], 1 << 30, library(), obstacle)
    if said is None:
        with pytest.raises(rerunning.Unproved) as raised:
            rerunning.run_again(found, [found.today], data.parent, str(library()))
        said = str(raised.value)
    assert why in said


@needs_library
@pytest.mark.parametrize(
    ("more", "replays", "why"),
    [("import os; print(os.getpid())", False, "printed something else when it ran again on the same file"),
     ("", True, "--replay asks for it")],
    ids=["nondeterministic", "asked for"],
)  # fmt: skip
def test_calls_are_replayed_if_the_program_is_not_run_and_the_reason_is_said(
    data: Path, profile: StoreProfile, more: str, replays: bool, why: str
) -> None:
    _, proof = proof_of(data, profile, READS.format(mode="r", more=more), replays=replays)
    assert proof.words.startswith("a replay of the calls (not on the program itself: ")
    assert why in proof.words
    assert any(one.seconds(proof.weights) for one in proof.each)


@needs_library
def test_a_layout_with_which_the_program_prints_something_else_is_not_advised(
    data: Path, profile: StoreProfile
) -> None:
    found, proof = proof_of(data, profile, READS.format(mode="r", more='print(file["x"].chunks)'))
    others = [one for one in proof.each if not one.option.candidate.is_today]
    assert others
    assert all(one.seconds(proof.weights) is None for one in others)
    assert any("the program printed something else with this layout" in (one.reason or "") for one in others)
    judge(found, proof)
    assert found.keeps


def test_the_reasons_against_running_a_program_are_said(data: Path, profile: StoreProfile) -> None:
    found = advice_on(data, profile, READS.format(mode="r", more=""))
    (demand,) = found.demands
    recorded = demand.recorded
    assert recorded is not None
    assert recorded.arguments[1:] == ("program.py",)
    assert recorded.directory == str(data.parent)

    def why(most_nbytes: int = 1 << 30, path: str | None = "library.so", **changes: Any) -> str:
        given = replace(demand, **changes)
        said = rerunning.why_not_run(replace(found, demands=[given]), [found.today], most_nbytes, path, lambda *_: None)
        return said or ""

    if demand.library == "hdf5":
        assert why() == ""
    assert "only Linux" in why(path=None)
    assert "nobody recorded how" in why(recorded=None)
    assert "in which folder" in why(recorded=replace(recorded, directory=None))
    assert "is gone" in why(recorded=replace(recorded, directory=str(data.parent / "gone")))
    assert "status -9" in why(recorded=replace(recorded, exit_status=-9))
    assert "with libhdf5" in why(library="zarr")
    assert "a file that is warm" in why(library="hdf5", cache="warm")
    assert "--sample is 1.00 kB" in why(1000, library="hdf5")
    assert "would take" in why(library="hdf5", recorded=replace(recorded, seconds=3600.0))


@needs_library
def test_copies_that_do_not_fit_on_the_disk_are_refused_before_anything_is_written(
    data: Path, profile: StoreProfile, small_disk: Path
) -> None:
    found = advice_on(data, profile, READS.format(mode="r", more=""))
    large = [replace(found.today, candidate=replace(one.candidate, is_today=False), stored_nbytes=1 << 30)
             for one in found.options[:2]]  # fmt: skip
    with pytest.raises(UsageError, match=r"running the program on copies needs .* GB of disk below .*--scratch"):
        rerunning.run_again(found, large, small_disk, str(library()))
    assert [one.name for one in small_disk.iterdir()] == ["old.npy"]


WAITS = """
import os, time
if os.path.exists("wait"):
    with open("pid.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("pid.new", "pid")
    time.sleep(600)
"""


@needs_library
def test_ctrl_c_ends_the_program_and_leaves_nothing(data: Path, profile: StoreProfile, profile_file: Path) -> None:
    advice_on(data, profile, WAITS + READS.format(mode="r", more=""))
    (data.parent / "wait").touch()
    before = sorted(data.parent.iterdir())
    line = [sys.executable, "-m", "hyperslab", "advise", f"{data}:x", "--trace", "run.trace", "--verify", "1",
            "--target", str(profile_file)]  # fmt: skip
    command = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    started = data.parent / "pid"
    while not started.exists():
        assert command.poll() is None, command.stderr and command.stderr.read()
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    command.communicate()
    assert command.returncode != 0
    program = int(started.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)
    started.unlink()
    assert sorted(data.parent.iterdir()) == before


def fill(disk: Path) -> None:
    """Another program takes all room of a disk."""
    with (disk / "another.bin").open("wb", buffering=0) as file:
        file.write(bytes(shutil.disk_usage(disk).free))


LARGE = """
import h5py
with h5py.File("data.h5") as file:
    for k in range(0, 400, 40):
        print(file["x"][:, k].sum())
"""


@pytest.fixture
def large(data: Path) -> Path:
    """As large as the small disk, if it is stored without a codec."""
    with h5py.File(data, "w") as file:
        elements = np.arange(800 * 400, dtype="i4").reshape(800, 400) % 97
        file.create_dataset("x", data=elements, chunks=(1, 400), compression="gzip")
    return data


@needs_library
def test_a_disk_that_fills_while_a_copy_is_written(large: Path, profile: StoreProfile, small_disk: Path) -> None:
    """That copy says so, another one is measured, and nothing is left on the disk."""
    found = advice_on(large, profile, LARGE)
    plain = StoredLayout((800, 400), contiguous=True)
    today = replace(found.today.candidate, is_today=False)
    too_large = replace(found.today, candidate=replace(today, layout=plain, encoding=PLAIN), stored_nbytes=1000)
    fits = replace(found.today, candidate=replace(today, layout=replace(today.layout, chunk_shape=(80, 40))))
    said: list[str] = []
    proof = rerunning.run_again(found, [found.today, too_large, fits], small_disk, str(library()), say=said.append)
    mine, other, last = proof.each
    assert other.reason is not None
    assert "No space left on device: make room" in other.reason
    assert len(said) == 1
    assert other.reason in said[0]
    assert (mine.reason, last.reason) == (None, None)
    assert mine.seconds(proof.weights)
    assert last.rejected, "it ran, though a disk in memory is never cold"
    assert [one.name for one in small_disk.iterdir()] == ["old.npy"]


@needs_library
def test_a_disk_that_is_filled_by_another_program(
    large: Path, profile: StoreProfile, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so after we looked whether there is room."""
    found = advice_on(large, profile, LARGE)
    check_room = rerunning.check_room

    def checked(*given: Any) -> None:
        check_room(*given)
        fill(small_disk)

    fits = replace(found.today, candidate=replace(found.today.candidate, is_today=False))
    monkeypatch.setattr(rerunning, "check_room", checked)
    with pytest.raises(NoSpace, match=f"the disk below {small_disk} is full"):
        rerunning.run_again(found, [found.today, fits], small_disk, str(library()))
    assert sorted(one.name for one in small_disk.iterdir()) == ["another.bin", "old.npy"]


def test_a_disk_that_fills_before_calls_are_replayed(
    data: Path, profile: StoreProfile, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = advice_on(data, profile, READS.format(mode="r", more=""))
    elements_of = verifying._elements

    def elements(*given: Any) -> Any:
        fill(small_disk)
        return elements_of(*given)

    monkeypatch.setattr(verifying, "_elements", elements)
    with pytest.raises(NoSpace, match=f"the disk below {small_disk} is full"):
        verifying.verify(found, profile, 1, small_disk)
    assert sorted(one.name for one in small_disk.iterdir()) == ["another.bin", "old.npy"]
