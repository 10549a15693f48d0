"""What a call asks of a library beyond boxes: steps, listed elements, growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hyperslab.model import Caches, Hdf5, Layout, Workload, Zarr, count, count_each
from hyperslab.model.call_counts import device_bytes, fresh_nbytes
from hyperslab.model.cells import ModelCell
from hyperslab.model.costs import CallsBeyond
from hyperslab.model.counting import COUNTED, Variables, count_operations
from hyperslab.model.libraries import HyperslabEngine
from hyperslab.model.predict import why_not

ARRAY = {"shape": [3000, 999], "dtype": "float32"}
LAYOUT = Layout((300, 111))


def workload(*accesses: dict[str, Any], array: dict[str, Any] = ARRAY, **others: Any) -> Workload:
    return Workload.model_validate({"array": array, "accesses": list(accesses), **others})


def box(start: list[int], shape: list[int], step: list[int] | None = None) -> Workload:
    given = {"start": start, "shape": shape} | ({"step": step} if step else {})
    return workload({"select": "list", "boxes": [given]})


def test_hdf5_walks_through_a_selection_with_steps() -> None:
    """`[::3, :]` and `[:, :333]` copy the same number of bytes, but h5py takes 70 times as long for the first."""
    third, narrow = box([0, 0], [1000, 999], [3, 1]), box([0, 0], [3000, 333])
    assert count(third, LAYOUT, Hdf5()).s_memcpy == count(narrow, LAYOUT, Hdf5()).s_memcpy
    assert count(third, LAYOUT, Hdf5()).n_element == 1000 * 999
    assert count(narrow, LAYOUT, Hdf5()).n_element == 0
    assert count(third, LAYOUT, Zarr()).n_element == 0, "NumPy copies lines"
    columns = box([0, 0], [3000, 333], [1, 3])
    assert count(columns, LAYOUT, Hdf5()).n_element == count(columns, LAYOUT, Zarr()).n_element == 3000 * 333
    assert count(columns, LAYOUT, Zarr()).n_memcpy == 3000 * 9, "a line in each chunk"
    one = box([5, 5], [1, 1], [3, 1])
    assert count(one, LAYOUT, Hdf5()).n_element == 0
    assert (count(third, LAYOUT, Hdf5()).n_line, count(third, LAYOUT, Hdf5()).n_run) == (1000 * 9, 1000)
    assert count(third, LAYOUT, Hdf5()).s_spread == 0, "lines are copied whole"
    assert (count(columns, LAYOUT, Hdf5()).n_line, count(columns, LAYOUT, Hdf5()).n_run) == (3000 * 9, 3000 * 333)
    assert count(columns, LAYOUT, Zarr()).s_spread == 3000 * 333 * 12
    assert count(columns, LAYOUT, Zarr()).n_line == count(narrow, LAYOUT, Hdf5()).n_line == 0
    line = workload({"select": "strided"}, array={"shape": [1000]})
    assert count(line, Layout((100,)), Hdf5()).n_run == 500
    assert count(line, Layout((100,)), Hdf5()).n_element == 0, "HDF5 has a way of its own for one axis"
    assert count(line, Layout((100,)), Zarr()).n_element == 500


def test_hdf5_copies_run_by_run_what_has_no_chunks() -> None:
    """Cold, `[::4]` of 4000 × 256 × 32 took 89 ms, of which 14 ms were computed; walking would take 400 ms."""
    whole = Layout((3000, 999), contiguous=True)
    third, columns = box([0, 0], [1000, 999], [3, 1]), box([0, 0], [3000, 333], [1, 3])
    for asked, runs in ((third, 1000), (columns, 3000 * 333)):
        found = count(asked, whole, Hdf5())
        assert (found.n_element, found.n_line, found.n_apart, found.n_run) == (0, 0, 0, 0)
        assert found.n_memcpy == runs
    lists = workload({"select": "lists", "lists": [[5, 9, 700], None]})
    assert count(lists, whole, Hdf5()).n_element == 0
    points = workload({"select": "points", "count": 50})
    assert count(points, whole, Hdf5()).n_element == 50, "once: memory is one piece"


def test_long_runs_of_an_array_in_one_piece_come_into_the_callers_memory_at_once() -> None:
    """HDF5 reads runs that do not fit its sieve buffer (64 KiB) into the caller's memory; chunks are copied."""
    whole, chunks = Layout((3000, 999), contiguous=True), Layout((30, 999))
    long, short = box([100, 0], [60, 999]), box([100, 0], [16, 999])
    nbytes = 60 * 999 * 4
    found = count(long, whole, Hdf5())
    assert (found.n_memcpy, found.s_memcpy, found.s_mshort, found.s_direct) == (0, 0, 0, nbytes)
    assert found.s_fresh == nbytes
    copied = count(long, chunks, Hdf5())
    assert (copied.s_memcpy, copied.s_direct) == (nbytes, 0)
    through_sieve = count(short, whole, Hdf5())
    assert (through_sieve.s_memcpy, through_sieve.s_direct) == (16 * 999 * 4, 0)
    small = workload({"select": "all"}, array={"shape": [100], "dtype": "float64"})
    assert count(small, Layout((100,), contiguous=True), Hdf5()).s_memcpy == 800, "the buffer holds all of it"


def test_netcdf4_takes_its_time_for_each_byte_that_it_returns_copied_or_not() -> None:
    long = box([100, 0], [60, 999])
    beyond = CallsBeyond(0.0, 0.0, 1e-9)
    seconds = [beyond.cost(count(long, one, Hdf5())).seconds for one in (Layout((3000, 999), contiguous=True), LAYOUT)]
    assert seconds == [pytest.approx(60 * 999 * 4e-9)] * 2


def test_memory_that_was_not_touched_before() -> None:
    assert fresh_nbytes([10, 20, 5, 20]) == 20, "what is freed is used again"
    assert fresh_nbytes([40 << 20, 40 << 20, 1 << 20]) == 80 << 20, "too much to keep"
    small = workload({"select": "list", "boxes": [{"start": [0, 0], "shape": [9, 9]}] * 5})
    assert count(small, LAYOUT, Hdf5()).s_fresh == 9 * 9 * 4
    everything = workload({"select": "all"})
    assert count(everything, LAYOUT, Hdf5()).s_kept == 8 << 20, "HDF5's chunk cache"
    assert count(everything, Layout((3000, 999)), Hdf5()).s_kept == 0, "no chunk fits"
    assert count(small, LAYOUT, Hdf5()).s_kept == 5 * 300 * 111 * 4


def test_bytes_that_move_again() -> None:
    array = {"shape": [1000, 100], "dtype": "float64"}
    rows = {"select": "list", "boxes": [{"start": [0, 0], "shape": [100, 100]}]}
    whole = Layout((1000, 100))
    small = Hdf5(chunk_cache_nbytes=1000)
    read = count_operations(ModelCell(workload(rows, array=array), whole, small, "page-warm"))["read"]
    assert read.s_unique == read.s_cache
    again = workload({**rows, "boxes": rows["boxes"] * 20}, array=array)
    read = count_operations(ModelCell(again, whole, small, "page-warm"))["read"]
    assert read.s_cache > 1.5e6
    assert 80_000 <= read.s_unique < 90_000, "the same rows"
    write = workload({**rows, "operation": "write", "boxes": rows["boxes"] * 20}, array=array)
    made = count_operations(ModelCell(write, whole, small, "new"))["write"]
    assert made.s_wdisk > 1.5e6
    assert made.s_dirty == made.s_grown == 800_000, "one chunk"
    assert made.s_encode_filler == 0
    once = workload({**rows, "operation": "write"}, array=array)
    encoded = count_operations(ModelCell(once, replace(whole, ratio=2.0, codec="zstd"), Hdf5(), "new"))["write"]
    assert encoded.s_encode_filler == pytest.approx(0.9 * encoded.s_encode)
    assert count_operations(ModelCell(write, whole, small, "page-warm"))["write"].s_grown == 0


def test_chunks_reach_beyond_the_array() -> None:
    everything = {"select": "all"}
    array = {"shape": [100, 90], "dtype": "int32"}
    layout = Layout((60, 60), ratio=2.0, codec="zstd")
    for library in (Hdf5(), Zarr()):
        read = count(workload(everything, array=array), layout, library)
        assert read.s_decode == 4 * 3600 * 4
        assert read.s_decode_filler == pytest.approx(read.s_decode * (1 - 9000 / (4 * 3600)))
        corner = {"select": "list", "boxes": [{"start": [60, 60], "shape": [40, 30]}]}
        assert count(workload(corner, array=array), layout, library).s_decode_filler == pytest.approx((3600 - 1200) * 4)
    whole = workload({"select": "list", "boxes": [{"start": [0, 0], "shape": [10, 10]}]}, array=array)
    assert count(whole, layout, Hdf5()).s_decode_filler == 0


def test_threads_help_only_calls_with_several_chunks() -> None:
    array = {"shape": [100, 100], "dtype": "int32"}
    layout = Layout((50, 50), ratio=2.0, codec="zstd")
    boxes = [{"start": [0, 0], "shape": [10, 10]}, {"start": [50, 50], "shape": [10, 10]}]
    single = workload({"select": "list", "boxes": boxes}, array=array)
    several = workload({"select": "all"}, array=array)
    assert count(single, layout, Zarr()).s_decode_alone == count(single, layout, Zarr()).s_decode == 2 * 2500 * 4
    assert count(several, layout, Zarr()).s_decode_alone == 0
    assert count(single, layout, Hdf5()).s_decode_alone == 0, "HDF5 has one thread"
    written = count(workload({"select": "list", "boxes": boxes, "operation": "write"}, array=array), layout, Zarr())
    assert written.s_encode_alone == written.s_encode == 2 * 2500 * 4


def test_lines_that_follow_each_other() -> None:
    """In memory if a chunk has all columns; if it has not, also in the file if no line between them is skipped."""
    rows = {"start": [0, 0], "shape": [10, 33], "step": [2, 3]}
    for step, columns, apart in (([1, 3], 10, 0.5), ([2, 3], 10, 1.0), ([2, 3], 100, 0.0), ([1, 3], 100, 0.0)):
        box = {"start": [0, 0], "shape": [10, 33], "step": step}
        found = count(workload({"select": "list", "boxes": [box]}), Layout((10, columns)), Hdf5())
        assert found.n_line == 10 * (10 if columns == 10 else 1), (step, columns)
        assert found.n_apart == apart * found.n_line, (step, columns)
    points = count(workload({"select": "points", "points": [[0, 0], [5, 5], [9, 9]]}), LAYOUT, Hdf5())
    assert points.n_apart == points.n_line > 0
    assert count(workload({"select": "list", "boxes": [rows]}), LAYOUT, Zarr()).n_apart == 0


def test_numpy_copies_a_column_at_once() -> None:
    column = workload({"select": "list", "boxes": [{"start": [0, 3], "shape": [600, 1]}]})
    found = count(column, LAYOUT, Zarr())
    assert (found.n_memcpy, found.n_chunk) == (2, 2), "a line in each chunk"
    assert found.s_spread == 600 * 64, "each element lies in a line of its own in the chunk, and not in the result"
    assert count(column, LAYOUT, Hdf5()).n_memcpy == 600
    narrow = count(workload({"select": "all"}), Layout((300, 1)), Zarr())
    assert narrow.n_memcpy == 999 * 10
    assert narrow.s_spread == 3000 * 999 * 64, "and here the other way round"


def test_points_and_lists_are_one_call() -> None:
    points = workload({"select": "points", "points": [[0, 0], [2999, 998], [0, 1]]})
    found = count(points, LAYOUT, Hdf5())
    assert (found.n_call, found.n_chunk, found.n_element, found.s_memcpy) == (1, 2, 6, 12)
    assert count(points, LAYOUT, Zarr()).n_open == 2
    lists = workload({"select": "lists", "lists": [[0, 5, 700], None]})
    found = count(lists, LAYOUT, Hdf5())
    assert (found.n_call, found.n_chunk, found.n_element) == (1, 18, 3 * 999)
    assert count(lists, LAYOUT, Zarr()).n_element == 0
    drawn = workload({"select": "points", "count": 50})
    assert count(drawn, LAYOUT, Hdf5()).n_element == 100
    assert why_not(ModelCell(drawn, LAYOUT, HyperslabEngine(), "cold")) is not None


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ({"select": "points", "points": [[0, 999]]}, r"the point \[0, 999\] is not in"),
        ({"select": "points", "points": [[0]]}, "is not in"),
        ({"select": "points", "points": [[0, 0]], "count": 2}, "no count"),
        ({"select": "lists", "lists": [[1]]}, "lists has 1 axes"),
        ({"select": "lists", "lists": [[5, 1], None]}, "must ascend"),
        ({"select": "lists", "lists": [[3000], None]}, "must ascend, from 0 to 2999"),
        ({"select": "lists"}, "needs lists"),
        ({"select": "append", "rows": 3}, "needs `operation: write`"),
        ({"select": "append", "operation": "write"}, "needs rows"),
        ({"select": "all", "rows": 3}, "needs rows"),
    ],
)
def test_what_cannot_be_asked(access: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        workload(access)


def test_an_array_grows() -> None:
    appended = workload({"select": "append", "rows": 300, "count": 2, "operation": "write"}, {"select": "all"})
    for library in (Hdf5(), Zarr()):
        rows = [dict(zip(COUNTED, row.tolist(), strict=True)) for row in count_each(appended, LAYOUT, library)]
        assert [row["n_chunk"] for row in rows] == [9, 9, 90, 0]
        assert sum(row["n_wdisk"] for row in rows) == 18
        assert [row["s_rdisk"] for row in rows[:2]] == [0, 0], "new chunks are written whole"
    parts = workload({"select": "append", "rows": 100, "count": 3, "operation": "write"})
    assert count(parts, LAYOUT, Zarr()).n_wdisk == 27
    assert count(parts, LAYOUT, Hdf5()).n_wdisk == 9, "HDF5 keeps the chunks"
    with pytest.raises(ValueError, match="has an order"):
        workload({"select": "append", "rows": 1, "operation": "write"}, order="shuffled")
    with pytest.raises(ValueError, match="cannot grow"):
        workload({"select": "append", "rows": 1, "operation": "write"}, array={"shape": [4, 4], "max_shape": [8, 4]})
    assert "only arrays in chunks grow" in str(
        why_not(ModelCell(parts, Layout((3000, 999), contiguous=True), Hdf5(), "cold"))
    )


def test_an_index_has_room_for_the_largest_shape() -> None:
    """With `libver` 1.10 or later, and a limit above the shape."""
    first = box([0, 0], [10, 10])
    small = Hdf5(index="fixed_array")
    wide = Hdf5(index="fixed_array", max_shape=(6000, 1998))
    caches = Caches(page_cache_nbytes=0)
    assert count(first, LAYOUT, small, caches).s_rindex == 28 + 14 + 8 * 90 + 4
    assert count(first, LAYOUT, wide, caches).s_rindex == 28 + 14 + 8 * 360 + 4


def _device_bytes(
    asked: list[float], needed: list[float], copied: list[float], pauses: Sequence[float] = (0, 0, 0)
) -> tuple[float, float, float]:
    """The bytes that are exposed, covered and of later calls."""
    names = ("n_rseek", "s_rseek", "n_rdisk", "n_cache", "n_memcpy", "s_decode")
    column = {name: np.zeros(len(asked)) for name in names}
    column |= {"s_rdisk": np.array(asked), "s_rneed": np.array(needed), "s_memcpy": np.array(copied)}
    found = device_bytes(column, np.zeros(len(asked)), np.array(pauses[: len(asked)]), reads_side_by_side=False)
    return found["s_exposed"], found["s_covered"], found["s_later"]


def test_reads_are_covered_by_what_the_same_call_computes() -> None:
    """Two calls: one only reads, one only copies. Nothing is covered, although the sums would cover each other."""
    exposed, covered, later = _device_bytes([1e6, 0], [1e6, 0], [0, 1e9])
    assert exposed == pytest.approx(1e6, rel=0.02)  # a call itself takes some time
    assert (exposed + covered, later) == pytest.approx((1e6, 0), abs=1)
    assert _device_bytes([1e6, 0], [1e6, 0], [1e9, 0]) == (0, 1e6, 0)


def test_what_is_read_ahead_comes_while_later_calls_compute() -> None:
    exposed, covered, later = _device_bytes([1e6, 0, 0], [0, 0, 1e6], [0, 1e9, 0])
    assert (exposed, covered + later) == pytest.approx((0, 1e6), abs=1)
    assert later > 0.98e6
    exposed, _, later = _device_bytes([1e6, 0, 0], [0, 1e6, 0], [0, 0, 1e9])  # it is needed before that
    assert exposed > 0.97e6
    assert later < 0.02e6
    assert _device_bytes([1e6, 0], [0, 0], [0, 0])[0] == 0  # and if nobody needs it, nobody waits


def test_what_is_read_ahead_comes_while_the_program_does_something_else() -> None:
    asked, needed, copied = [1e6, 0, 1e6], [0, 1e6, 1e6], [0, 0, 0]
    exposed, _, later = _device_bytes(asked, needed, copied, (1, 1, 1))
    assert (exposed, later) == pytest.approx((1e6, 1e6), rel=0.02), "no pause brings what nobody has asked for yet"
    assert _device_bytes(asked, needed, copied)[0] == pytest.approx(2e6, rel=0.02)
    assert _device_bytes(asked, needed, copied, (0, 0, 1))[0] == pytest.approx(2e6, rel=0.02), "the last comes too late"


def test_reads_in_order_of_a_cold_array_in_one_piece_hardly_wait() -> None:
    """Of 512 calls, only those that read all in one go wait for most of it."""
    shape = [4096, 1024]
    in_one_piece, caches = Layout((4096, 1024), contiguous=True), Caches(read_ahead_nbytes=8 << 20)

    def counted(rows: int, calls: int) -> Variables:
        boxes = [{"start": [k * rows, 0], "shape": [rows, 1024]} for k in range(calls)]
        accesses = [{"select": "list", "boxes": boxes}]
        asked = Workload.model_validate({"array": {"shape": shape, "dtype": "float32"}, "accesses": accesses})
        return count(asked, in_one_piece, Hdf5(), caches)

    few, all_rows, at_once = counted(4, 10), counted(4, 1024), counted(4096, 1)
    for each in (few, all_rows, at_once):
        assert each.s_exposed + each.s_covered + each.s_later == pytest.approx(each.s_rdisk)
        assert each.s_rneed <= each.s_rdisk - each.s_rseek
    assert few.s_rdisk > 6 * few.s_memcpy  # the system reads ahead what nobody reads
    assert few.s_memcpy - (16 << 10) <= few.s_rneed <= few.s_memcpy + (64 << 10)  # opening read 16 KiB; a sieve more
    assert all_rows.s_rdisk == at_once.s_rdisk
    assert all_rows.s_exposed < 0.5 * at_once.s_exposed


@pytest.mark.parametrize("library", [Hdf5(), Zarr()], ids=["hdf5", "zarr"])
def test_each_chunk_that_a_codec_decodes_or_encodes_is_counted(library: Hdf5 | Zarr) -> None:
    """Many small chunks take longer than few large ones with as many bytes."""
    whole = workload({"select": "all"})
    small, large = (Layout(shape, ratio=2.0, codec="zstd:3") for shape in ((30, 37), (300, 999)))
    assert count(whole, small, library).n_decode == 100 * 27
    assert count(whole, large, library).n_decode == 10
    assert count(whole, Layout((30, 37)), library).n_decode == 0
    written = count(workload({"select": "all", "operation": "write"}), small, library, chunks="missing")
    assert (written.n_encode, written.n_decode) == (100 * 27, 0)
