"""Accesses to bytes become accesses to the chunks that h5py finds there, and recorded reads are those of the system."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from preloaded_programs import IS_PRELOADED, mask, traced, union

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.trace.byte_ranges import Row, Rows, bytes_of, mapped
from hyperslab.trace.chunk_places import boxes_of_run
from hyperslab.trace.recording.log import HYPERSLAB
from hyperslab.trace.trace import Trace

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
preloaded = pytest.mark.skipif(not IS_PRELOADED, reason="there is no libhyperslab_preload.so: only Linux has it")
SHAPE = (12, 9)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Arrays with codecs, with chunks alone, and with neither; the last is virtual."""
    with h5py.File(tmp_path / "a.h5", "w") as made:
        values = np.arange(108, dtype="i4").reshape(SHAPE)
        made.create_dataset("packed", data=values, chunks=(4, 4), compression="gzip")
        made.create_dataset("chunked", data=values, chunks=(5, 9))
        made.create_dataset("plain", data=values)
        layout = h5py.VirtualLayout(SHAPE, "i4")
        layout[:] = h5py.VirtualSource(made["plain"])
        made.create_virtual_dataset("a_view", layout)
    return tmp_path / "a.h5"


def trace_of(path: Path, *ranges: tuple[int, int], thread: int = 1) -> Trace:
    """A trace of reads of these bytes, one after the other."""
    rows = Rows({}, [])
    number = rows.number(bytes_of("POSIX", str(path), path.stat().st_size))
    for k, (start, length) in enumerate(ranges):
        numbers = [start, 1, length, 1]
        rows.rows.append(Row(100 * k, 10, 1, thread, 0, 0, number, 0, length, HYPERSLAB, numbers))
    return Trace(**vars(mapped(rows.table([], {}))))


def chunk(path: Path, name: str, number: int) -> tuple[tuple[int, ...], int, int]:
    """Where h5py finds a chunk: its first index, its first byte, its length."""
    with h5py.File(path) as opened:
        found = opened[name].id.get_chunk_info(number)
    return found.chunk_offset, found.byte_offset, found.size


@pytest.mark.parametrize("number", range(9))
def test_a_chunk_with_codecs_is_needed_whole(file: Path, number: int) -> None:
    (row, column), start, _ = chunk(file, "packed", number)
    (one,) = trace_of(file, (start + 3, 2))
    assert (one.array.array, one.array.chunks, one.array.filters) == ("/packed", (4, 4), ("deflate",))
    assert (one.selection_kind, one.nbytes) == ("hyperslab", 4 * int(mask(one).sum()))
    expected = np.zeros(SHAPE, bool)
    expected[row : row + 4, column : column + 4] = True
    np.testing.assert_array_equal(mask(one), expected)


@given(first=st.integers(0, 107), count=st.integers(1, 108))
def test_bytes_without_codecs_are_the_elements_themselves(tmp_path_factory: Any, first: int, count: int) -> None:
    folder = tmp_path_factory.mktemp("plain")
    with h5py.File(folder / "a.h5", "w") as made:
        made.create_dataset("plain", data=np.zeros(SHAPE, "i4"))
        start = made["plain"].id.get_offset()
    count = min(count, 108 - first)
    (one,) = trace_of(folder / "a.h5", (start + 4 * first, 4 * count))
    expected = np.zeros(108, bool)
    expected[first : first + count] = True
    np.testing.assert_array_equal(mask(one), expected.reshape(SHAPE))
    assert one.nbytes == 4 * count


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
def test_boxes_of_a_run(shape: list[int], data: st.DataObject) -> None:
    size = int(np.prod(shape))
    first = data.draw(st.integers(0, size))
    last = data.draw(st.integers(first, size))
    found = np.zeros(shape, int)
    boxes = boxes_of_run(first, last, shape)
    for starts, lengths in boxes:
        found[tuple(slice(a, a + n) for a, n in zip(starts, lengths, strict=True))] += 1
    expected = np.zeros(size, int)
    expected[first:last] = 1
    np.testing.assert_array_equal(found, expected.reshape(shape))
    assert len(boxes) <= 2 * len(shape)


def test_partial_chunks_and_chunks_at_the_edge(file: Path) -> None:
    (row, _), start, _ = chunk(file, "chunked", 2)
    assert row == 10
    (one,) = trace_of(file, (start, 4 * 45))  # three rows of it are beyond the array
    expected = np.zeros(SHAPE, bool)
    expected[10:] = True
    np.testing.assert_array_equal(mask(one), expected)


def test_one_read_of_several_arrays_and_the_header(file: Path) -> None:
    size = file.stat().st_size
    trace = trace_of(file, (0, size), (0, 8))
    assert [(one.array.array, one.selection_kind) for one in trace] == [
        ("/packed", "all"), ("/chunked", "all"), ("/plain", "all"), ("(bytes)", "hyperslab"),
    ]  # fmt: skip
    assert sum(round(one.seconds * 1e9) for one in list(trace)[:3]) in (8, 9, 10)
    assert trace[3].selection == [0, 1, 8, 1]


def test_a_chunk_that_is_read_in_several_calls_counts_once(file: Path) -> None:
    _, start, length = chunk(file, "packed", 4)
    trace = trace_of(file, (start, 5), (start + 5, 7), (start + 12, length - 12), (start, 5))
    assert [one.selection for one in trace] == [[4, 1, 4, 1, 4, 1, 4, 1]] * 2
    assert [round(one.seconds * 1e9) for one in trace] == [30, 10]


def test_a_file_that_is_gone_or_no_array_file(tmp_path: Path, file: Path) -> None:
    other = tmp_path / "b.h5"
    other.write_bytes(b"no archive" * 10)
    trace = trace_of(other, (5, 10))
    assert [(one.array.array, one.selection) for one in trace] == [("(bytes)", [5, 1, 10, 1])]
    assert "are to bytes, and not to arrays" in trace.notes[0]
    file.rename(tmp_path / "c.h5")
    (tmp_path / "c.h5").rename(file)
    rows = Rows({}, [])
    number = rows.number(bytes_of("POSIX", str(tmp_path / "gone.h5"), 100))
    rows.rows.append(Row(0, 1, 1, 1, 0, 0, number, 0, 3, HYPERSLAB, [0, 1, 3, 1]))
    assert "gone.h5 is not there any more" in mapped(rows.table([], {})).notes[0]


READS = """
import os, sys
import numpy as np
path = sys.argv[1]
with open(path, "rb", buffering=0) as file:
    file.seek(100), file.read(30), file.read(50)
    file.readinto(memoryview(bytearray(40)))
    os.preadv(file.fileno(), [bytearray(8), bytearray(16)], 700)
number = os.open(path, os.O_RDONLY)
copy = os.dup(number)
os.pread(number, 64, 1000)
os.lseek(number, 10, os.SEEK_SET), os.read(copy, 4)
np.fromfile(path, "u1", 24, offset=300)
pipe, end = os.pipe()
os.write(end, b"abc"), os.read(pipe, 3)
child = os.fork()
if child == 0:
    os.pread(number, 5, 5)
    os._exit(0)
os.waitpid(child, 0)
try:
    os.read(999, 1)
except OSError as error:
    print(error)
os.remove(path) if len(sys.argv) > 2 else None
"""
EXPECTED = [(100, 30), (130, 50), (180, 40), (700, 24), (1000, 64), (10, 4), (300, 24), (5, 5)]


def run(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], Trace]:
    done = run_hyperslab("trace", "-o", "run.trace", "--posix", "--", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, Trace.open(folder / "run.trace")


@preloaded
def test_reads_of_libc_are_recorded(file: Path) -> None:
    (file.parent / "program.py").write_text(READS)
    done, trace = run(file.parent, sys.executable, "program.py", "a.h5", "remove")
    assert done.stdout == "[Errno 9] Bad file descriptor\n"
    assert [(one.array.file, one.array.library) for one in trace] == [(str(file), "POSIX")] * len(EXPECTED)
    assert [(one.selection[0], one.selection[2]) for one in trace] == EXPECTED
    assert len({one.process for one in trace}) == 2
    assert [note for note in trace.notes if "killed" in note] == []


@preloaded
def test_nothing_is_recorded_unless_you_ask(file: Path) -> None:
    (file.parent / "program.py").write_text(READS)
    assert traced(file.parent, sys.executable, "program.py", "a.h5").returncode == 0
    assert len(hs.Trace.open(file.parent / "run.trace")) == 0


@preloaded
def test_reads_by_libhdf5_count_once(file: Path) -> None:
    (file.parent / "program.py").write_text("import h5py\nh5py.File('a.h5')['packed'][:2]\n")
    _, trace = run(file.parent, sys.executable, "program.py")
    assert [(one.array.library, one.array.array) for one in trace] == [("h5py", "/packed")]


@preloaded
def test_a_program_that_reads_chunks(file: Path) -> None:
    """`dd` copies one chunk and half of a row: the trace says which elements these are."""
    _, start, length = chunk(file, "packed", 1)
    with h5py.File(file) as opened:
        plain = opened["plain"].id.get_offset()
    script = f"dd if=a.h5 of=/dev/null bs=1 skip={start} count={length}; dd if=a.h5 of=x bs=4 skip={plain // 4} count=5"
    assert plain % 4 == 0
    _, trace = run(file.parent, "sh", "-c", script)
    packed = [one for one in trace if one.array.array == "/packed"]
    assert [one.selection for one in packed] == [[0, 1, 4, 1, 4, 1, 4, 1]]
    expected = np.zeros(SHAPE, bool)
    expected[0, :5] = True
    np.testing.assert_array_equal(union(one for one in trace if one.array.array == "/plain"), expected)


def system_calls(folder: Path, *words: str) -> list[tuple[int, int]]:
    """The reads of `a.h5` that strace sees: where they begin, and how many bytes."""
    if shutil.which("strace") is None:
        pytest.skip("not installed: apt install strace")
    calls = "openat,read,pread64,lseek"
    made = ["strace", "-f", "-y", "-s", "0", "-e", f"trace={calls}", "-o", "calls.txt", *words]
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True, timeout=240)
    if done.returncode:
        pytest.skip(f"strace cannot run here: {done.stderr[-200:]}")
    found, positions = [], {}
    for line in (folder / "calls.txt").read_text().splitlines():
        if "a.h5>" not in line:
            continue
        name = re.search(r"\b(openat|read|pread64|lseek)\(", line)
        result = re.search(r"\) += (-?\d+)", line)
        number = re.search(r"(\d+)</", line)
        if name is None or result is None or number is None:
            continue
        value = int(result[1])
        if name[1] == "openat":
            positions[value] = 0
        elif name[1] == "lseek":
            positions[int(number[1])] = value
        elif value > 0:
            at = positions.get(int(number[1]), 0)
            if name[1] == "pread64":
                at = int(re.search(r", (\d+)\) +=", line)[1])  # type: ignore[index]
            else:
                positions[int(number[1])] = at + value
            found.append((at, value))
    return found


@preloaded
@pytest.mark.parametrize(
    "words",
    [
        ("dd", "if=a.h5", "of=/dev/null", "bs=512", "skip=2", "count=5"),
        ("dd", "if=a.h5", "of=/dev/null", "bs=1000"),
        (sys.executable, "-c", "f = open('a.h5', 'rb')\nwhile f.read(700): f.seek(300, 1)"),
        (sys.executable, "-c", "import os\nf = os.open('a.h5', 0)\nfor k in range(9): os.pread(f, 17 * k, 99 * k)"),
    ],
)
def test_the_same_reads_as_strace_sees(file: Path, words: tuple[str, ...]) -> None:
    expected = system_calls(file.parent, *words)
    assert len(expected) > 3
    script = " ".join(f"'{word.replace(chr(39), chr(34))}'" for word in words) + "; mv a.h5 b.h5"
    _, trace = run(file.parent, "sh", "-c", script)
    assert [(one.selection[0], one.selection[2]) for one in trace] == expected
