"""Workloads that processes share: who owns what, what each one asks for, and the limits of the formulas."""

from __future__ import annotations

import io
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_profile import made_up_parallel_profile
from typer.testing import CliRunner

from draws import few
from hyperslab.cli import app
from hyperslab.cli.arguments import stripe_of
from hyperslab.errors import NotAStoreProfile, StudyError, TooFewCells, UsageError
from hyperslab.model import Hdf5, Layout, Workload, Zarr, load_workload
from hyperslab.parallel.partition import PARTITIONS, divided, owned_boxes
from hyperslab.parallel.predict import Sharing, count_processes, predict_parallel
from hyperslab.parallel.profile import TERMS, Asked, ParallelObservation, fit_profile, load_parallel_profile
from hyperslab.parallel.striping import ProcessRequests, Striping, requests_of, turns_at_servers

runner = CliRunner()
grids = st.lists(st.integers(1, 6), min_size=1, max_size=4)


def workload(shape: list[int], operation: str = "read", **access: Any) -> Workload:
    asked = {"select": "all", "operation": operation, **access}
    return Workload.model_validate({"array": {"shape": shape, "dtype": "float32"}, "accesses": [asked]})


@given(grids, st.integers(1, 20), st.sampled_from(PARTITIONS), st.integers(0, 9))
@settings(max_examples=few(200), deadline=None)
def test_each_chunk_has_one_owner(counts: list[int], processes: int, partition: Any, seed: int) -> None:
    axis = {"rows": 0, "columns": len(counts) - 1}.get(partition)
    if processes > (math.prod(counts) if axis is None else counts[axis]):
        with pytest.raises(UsageError, match="cannot share"):
            list(owned_boxes(counts, processes, partition, seed))
        return
    owned = list(owned_boxes(counts, processes, partition, seed))
    per_process = [
        [index for box in boxes for index in itertools.product(*(range(*one) for one in box))] for boxes in owned
    ]
    assert len(owned) == processes
    assert all(per_process)
    everything = sorted(index for indices in per_process for index in indices)
    assert everything == list(itertools.product(*map(range, counts)))
    if partition == "blocks":  # in row-major order from the first process to the last
        assert [index for indices in per_process for index in indices] == everything


@st.composite
def selections(draw: st.DrawFn) -> tuple[list[int], list[int], dict[str, Any]]:
    shape = draw(st.lists(st.integers(1, 24), min_size=1, max_size=3))
    chunks = [draw(st.integers(1, length)) for length in shape]
    boxes = []
    for _ in range(draw(st.integers(1, 3))):
        step = [draw(st.integers(1, 4)) for _ in shape]
        start = [draw(st.integers(0, length - 1)) for length in shape]
        most = [(length - 1 - a) // s + 1 for length, a, s in zip(shape, start, step, strict=True)]
        boxes.append({"start": start, "shape": [draw(st.integers(1, one)) for one in most], "step": step})
    return shape, chunks, {"select": "list", "boxes": boxes}


@given(selections(), st.integers(1, 6), st.sampled_from(PARTITIONS))
@settings(max_examples=few(150), deadline=None)
def test_the_parts_of_all_processes_are_the_whole(
    drawn: tuple[list[int], list[int], dict[str, Any]], processes: int, partition: Any
) -> None:
    shape, chunks, access = drawn
    asked = workload(shape, **access)
    try:
        parts = divided(asked, Layout(tuple(chunks)), processes, partition)
    except UsageError:
        return
    whole, shared = np.zeros(shape, int), np.zeros(shape, int)
    for step in asked.steps():
        whole[step.selection.slices] += 1  # type: ignore[union-attr]
    for part in parts:
        for step in part.steps():
            shared[step.selection.slices] += 1  # type: ignore[union-attr]
    assert (whole == shared).all()


def test_what_cannot_be_shared_is_refused() -> None:
    points = workload([40], select="points", count=3)
    with pytest.raises(UsageError, match="not listed points"):
        divided(points, Layout((10,)), 2, "rows")
    with pytest.raises(UsageError, match="5 processes cannot share 4 rows of chunks"):
        divided(workload([40, 8]), Layout((10, 2)), 5, "rows")


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.integers(1, 3000), st.integers(1, 9), st.integers(0, 5))
@settings(max_examples=few(200), deadline=None)
def test_pieces_are_the_byte_range(offset: int, nbytes: int, stripe: int, count: int, more: int) -> None:
    pieces = list(Striping(count + more, stripe, count).pieces(offset, nbytes))
    assert sum(length for _, _, length in pieces) == nbytes
    place = offset
    for server, inside, length in pieces:
        assert server == place // stripe % count
        assert inside == place // stripe // count * stripe + place % stripe
        place += length


@pytest.mark.parametrize(("servers", "stripe", "count"), [(0, 1, 1), (2, 0, 1), (2, 1, 3), (2, 1, 0), (10**9, 1, 1)])
def test_impossible_stripes_are_refused(servers: int, stripe: int, count: int) -> None:
    with pytest.raises(UsageError):
        Striping(servers, stripe, count)


def test_more_requests_than_can_be_counted_are_refused() -> None:
    with pytest.raises(UsageError, match=r"stripes of 1 bytes cut .* use larger stripes"):
        count_processes(workload([65536, 4096]), Layout((65536, 4096)), Hdf5(), Sharing(1, Striping(4, 1, 4)))


def test_processes_without_accesses_do_not_contend() -> None:
    one_chunk = workload([64, 8], select="list", boxes=[{"start": [0, 0], "shape": [8, 8]}])
    found = predict_parallel(
        one_chunk, [Layout((8, 8))], Sharing(8, Striping(1, 256, 1)), made_up_parallel_profile(), libraries=["hdf5"]
    )
    assert (found[0].cf, len(found[0].per_process)) == (1.0, 1)


def test_requests_are_chunks_runs_and_chunk_files() -> None:
    layout, striping = Layout((100, 16)), Striping(4, 6400, 2)
    reads = count_processes(workload([1000, 64]), layout, Hdf5(), Sharing(4, striping, "columns"))
    # A process reads its column of ten chunks whole, and the blocks of the index.
    assert [sum(each.nbytes == 6400) for each in reads] == [10] * 4
    wide = Sharing(4, Striping(4, 1 << 20, 1), "blocks")
    writes = count_processes(workload([1000, 64], "write"), layout, Hdf5(), wide, "new")
    # With MPI it writes runs: rows of 16 elements of the 10 chunks, in the whole rows of its memory.
    assert [sum(each.nbytes == 64) for each in writes] == [1000] * 4
    files = count_processes(workload([1000, 64], "write"), layout, Zarr(), Sharing(4, striping, "rows"), "new")
    assert [each.opens for each in files] == [8, 12, 8, 12]
    assert [int((each.servers == 4).sum()) for each in files] == [8, 12, 8, 12]


counts = st.floats(1, 1e6)


@given(counts, counts, st.integers(1, 64), st.sampled_from(["read", "write"]))
@settings(max_examples=few(100), deadline=None)
def test_one_process_and_endless_servers_are_serial(n: float, s: float, processes: int, direction: Any) -> None:
    profile = made_up_parallel_profile()

    def seconds(library: str, p: int, c: int) -> float:
        asked = Asked.of((n, s), (n * p / c, s * p / c))  # shared evenly
        return sum(profile.seconds(library, direction, asked, p, c)[0].values())

    serial = seconds("hdf5", 1, 1)
    assert seconds("hdf5", 1, 40) == pytest.approx(serial)
    assert seconds("hdf5", processes, 2**62) == pytest.approx(serial)
    # Zarr's processes still wait for the one metadata server.
    waiting = profile.coefficients[f"zarr {direction}"]["n*p"] * n * (processes - 1)
    assert seconds("zarr", processes, 2**62) == pytest.approx(seconds("zarr", 1, 1) + waiting)


@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from(["hdf5", "zarr"]))
@settings(max_examples=few(60), deadline=None)
def test_more_servers_are_never_slower(c: int, more: int, library: str) -> None:
    profile, asked, layout = made_up_parallel_profile(), workload([64, 8]), Layout((8, 8))

    def seconds(servers: int) -> float:
        sharing = Sharing(8, Striping(servers, 256, servers))
        return predict_parallel(asked, [layout], sharing, profile, libraries=[library])[0].seconds

    assert seconds(c + more) <= seconds(c) * (1 + 1e-9)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=8), min_size=1, max_size=5),
    st.booleans(),
)
@settings(max_examples=few(100), deadline=None)
def test_turns_are_between_the_busiest_server_and_everything(asked: list[list[tuple[int, int]]], apart: bool) -> None:
    """`apart`: each process has servers of its own, as if there were ever more of them."""
    made = []
    for process, rows in enumerate(asked):
        servers = np.array([server + 4 * process * apart for server, _ in rows], np.uint32)
        nbytes, zeros = np.array([n for _, n in rows], float), np.zeros(len(rows), np.uint64)
        made.append(ProcessRequests(servers, nbytes, np.zeros(len(rows), bool), zeros, zeros, 0))
    turns = turns_at_servers(made, "read", 4 * len(made))
    loads = [np.bincount(np.concatenate([each.servers for each in made])).max()]
    loads.append(np.bincount(np.concatenate([e.servers for e in made]), np.concatenate([e.nbytes for e in made])).max())
    own = [max(each.totals("read")[k] for each in made) for k in (0, 1)]
    for found, load, most, total in zip(
        turns, loads, own, map(sum, zip(*(e.totals("read") for e in made), strict=True)), strict=True
    ):
        assert max(load, most) <= found <= total
        if apart or len(made) == 1:
            assert found == most
    assert turns_at_servers(made, "write", 4 * len(made)) == (0.0, 0.0)


def test_processes_that_begin_at_the_same_server_wait_for_each_other() -> None:
    zeros = np.zeros(4, np.uint64)
    one = ProcessRequests(np.arange(4, dtype=np.uint32), np.full(4, 10.0), np.zeros(4, bool), zeros, zeros, 0)
    assert turns_at_servers([one] * 4, "read", 4) == (7.0, 70.0)  # no server has more than 4


def test_the_fit_finds_known_coefficients() -> None:
    truth = made_up_parallel_profile()
    random = np.random.default_rng(5)
    cells = []
    for library in ("hdf5", "zarr"):
        for _ in range(60):
            n, s = float(random.integers(1, 500)), float(random.integers(10**4, 10**8))
            p, c = int(random.integers(1, 32)), int(random.integers(1, 9))
            asked = Asked.of((n, s), (n * p / c * random.uniform(1, 2), s * p / c * random.uniform(1, 2)))
            seconds = sum(truth.seconds(library, "read", asked, p, c)[0].values())
            cells.append(ParallelObservation(library, "read", p, c, asked, seconds))
    made = fit_profile("made up", 8, cells)
    for key in ("hdf5 read", "zarr read"):
        assert made.coefficients[key] == pytest.approx(truth.coefficients[key], rel=1e-3)
        assert made.spread[key] < 1e-6
    with pytest.raises(TooFewCells, match="hdf5 read"):
        fit_profile("made up", 8, cells[:3])


def test_a_profile_survives_saving(tmp_path: Path) -> None:
    made = made_up_parallel_profile()
    made.save(tmp_path / "p.json")
    assert load_parallel_profile(tmp_path / "p.json") == made
    for content in ("", "[]", "{}", json.dumps({"kind": "hyperslab parallel profile", "version": 99})):
        (tmp_path / "p.json").write_text(content)
        with pytest.raises(NotAStoreProfile, match=r"p\.json"):
            load_parallel_profile(tmp_path / "p.json")


def without(profile: dict[str, Any], *keys: str) -> dict[str, Any]:
    inner = profile
    for key in keys[:-1]:
        inner = inner[key]
    del inner[keys[-1]]
    return profile


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: {**p, "coefficients": {}}, "no coefficients"),
        (
            lambda p: without(p, "coefficients", "hdf5 read", "n_turns"),
            "hdf5 read: coefficients are missing: n_turns",
        ),
        (lambda p: without(p, "paper", "zarr read", "n*p"), r"zarr read: coefficients are missing: n\*p"),
        (lambda p: without(p, "baseline", "zarr read"), "zarr read"),
        (lambda p: without(p, "spread", "zarr read"), "zarr read"),
        (lambda p: {**p, "spread": {**p["spread"], "zarr read": float("nan")}}, "nan is not a number"),
        (lambda p: {**p, "coefficients": {"fits read": {}}}, "'fits read' is not a library"),
        (lambda p: {**p, "cells": [["hdf5"]]}, r"p\.json"),
    ],
)
def test_a_profile_that_was_changed_by_hand_is_refused(tmp_path: Path, change: Any, said: str) -> None:
    path = tmp_path / "p.json"
    made_up_parallel_profile().save(path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(NotAStoreProfile, match=said):
        load_parallel_profile(path)


def test_a_profile_of_brackets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("[" * 100_000)
    with pytest.raises(NotAStoreProfile, match=r"p\.json"):
        load_parallel_profile(tmp_path / "p.json")


def test_the_interval_covers_numbers_of_processes_that_the_training_lacks() -> None:
    """Experiments whose time grows with processes as no formula says."""
    cells = []
    for processes, table in itertools.product((1, 2, 4, 8), range(4)):
        n, s = 100.0 / processes * (table + 1), 1e7 / processes * (table + 1)
        asked = Asked.of((n, s), (n * processes / 4, s * processes / 4))
        seconds = (0.01 * n + s * 1e-8) * processes**0.3
        cells.append(ParallelObservation("hdf5", "read", processes, 4, asked, seconds, f"table {table}, x"))
    made = fit_profile("made up", 4, cells)
    others = [cell for cell in cells if cell.processes < 8]
    coefficients = fit_profile("made up", 4, others).coefficients["hdf5 read"]
    errors = [
        math.log10(
            sum(v * coefficients[t] for v, t in zip(cell.values(TERMS["hdf5"]), TERMS["hdf5"], strict=True))
            / cell.seconds
        )
        for cell in cells
        if cell.processes == 8
    ]
    assert max(map(abs, errors)) < math.log10(made.reach("hdf5", "read"))


WORKLOAD = """array: {shape: [512, 64], dtype: float32}
accesses: [{select: all, operation: write}]
processes: 4
partition: blocks
servers: 4
stripe: {count: 2}
"""


def test_the_command_prices_processes(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    made_up_parallel_profile().save(tmp_path / "p.json")
    arguments = ["predict", str(tmp_path / "w.yaml"), "--layout", "64x64", "--profile", str(tmp_path / "p.json")]
    done = runner.invoke(app, [*arguments, "--cache", "new", "--json"])
    assert done.exit_code == 0, done.exception
    found = {each["library"]: each for each in json.loads(done.stdout)["predictions"]}
    assert (found["hdf5"]["servers"], found["zarr"]["servers"]) == (2, 4)
    assert (found["hdf5"]["cf"], found["zarr"]["cf"]) == (2.5, 1.75)
    assert found["zarr"]["n"]["write"] == 2
    assert found["hdf5"]["low"] < found["hdf5"]["seconds"] < found["hdf5"]["high"]
    alone = runner.invoke(app, [*arguments, "--cache", "new", "--processes", "8", "--stripe", "16KiB:4"])
    assert "8 processes, by blocks" in alone.stdout
    gathered = runner.invoke(app, [*arguments, "--cache", "new", "--collective", "--json"])
    assert json.loads(gathered.stdout)["processes"] == 4


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--processes", "99"], "99 processes cannot share 8"),
        (["--servers", "1"], "stripe count of 2 does not fit 1 servers"),
        (["--stripe", "4"], None),
        (["--stripe", "four:2"], "is not a stripe"),
        (["--stripe", "1MiB:0"], "is not a stripe"),
        (["--stripe", "1MiB:9"], "stripe count of 9 does not fit"),
        (["--partition", "diagonals"], "is not a partition"),
        (["--cache", "page-warm"], "priced cold, or new"),
        (["--libraries", "flat"], "not for flat"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, more: list[str], said: str | None) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    made_up_parallel_profile().save(tmp_path / "p.json")
    arguments = ["predict", str(tmp_path / "w.yaml"), "--layout", "64x64", "--profile", str(tmp_path / "p.json")]
    failed = runner.invoke(app, [*arguments, *more])
    if said is None:
        assert failed.exit_code == 0, failed.exception
        return
    assert isinstance(failed.exception, UsageError)
    assert said in str(failed.exception)


def test_a_workload_file_with_impossible_stripes_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(WORKLOAD.replace("count: 2", "count: 5"))
    with pytest.raises(StudyError, match=r"line 6.*a stripe count of 5, but there are 4 servers"):
        load_workload(path)


@pytest.mark.parametrize(
    ("text", "found"), [("1MiB:4", (2**20, 4)), ("4096", (4096, None)), ("2kB", (2000, None)), ("1g:2", (10**9, 2))]
)
def test_stripes_are_parsed(text: str, found: tuple[int, int | None]) -> None:
    assert stripe_of(text) == found


def test_serial_prices_are_those_of_one_process(tmp_path: Path) -> None:
    from made_up import made_up_store_profile

    from hyperslab.model.predict import predict

    trained, asked, layout = made_up_store_profile(tmp_path), workload([64, 8]), Layout((8, 8))
    serial = {each.library: each.cost.seconds for each in predict(asked, [layout], store_profile=trained)}
    for library in ("hdf5", "zarr"):
        sharing = Sharing(1, Striping(4, 256, 4))
        (alone,) = predict_parallel(asked, [layout], sharing, trained, libraries=[library])
        assert alone.seconds == pytest.approx(serial[library])
        crowded = Sharing(8, Striping(1, 256, 1))
        (shared,) = predict_parallel(asked, [layout], crowded, trained, libraries=[library])
        assert shared.cf == 8
        assert shared.low < shared.seconds < shared.high


def test_requests_of_one_process_are_those_of_the_serial_program() -> None:
    layout = Layout((100, 16))
    (alone,) = count_processes(workload([1000, 64]), layout, Hdf5(), Sharing(1, Striping(1, 1 << 20, 1)))
    assert alone.totals("read") == requests_of(workload([1000, 64]), layout, Hdf5(), Striping(1, 1 << 20, 1)).totals(
        "read"
    )
    assert alone.totals("read")[1] >= 1000 * 64 * 4


def test_a_published_machine_prices_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("array: {shape: [65536, 4096], dtype: float32}\naccesses: [{select: all}]\npartition: blocks\n")
    arguments = ["predict", str(path), "--layout", "64x4096", "--processes", "512", "--json", "--profile"]
    done = runner.invoke(app, [*arguments, "cori"])
    assert done.exit_code == 0, done.exception
    document = json.loads(done.stdout)
    assert document["store"] == "published: cori, cori-haswell, 8 cells"
    assert document["servers"] == 248
    found = {each["library"]: each for each in document["predictions"]}
    # 2 MiB for each process: more than IOR's processes take for so much, which move 106 MiB a second.
    assert 2 / 106 < found["zarr"]["seconds"] < 1
    assert 2 / 106 < found["hdf5"]["seconds"] < 1
    assert found["zarr"]["extrapolating"] == []
    assert "requests of 4.21e+05 bytes" in found["hdf5"]["extrapolating"][0], "with the blocks of the index"
    knl = json.loads(runner.invoke(app, [*arguments, "cori:cori-knl", "--collective"]).stdout)
    assert "cori-knl" in knl["store"]
    failed = runner.invoke(app, [*arguments, "cori:cori-gpu"])
    assert "has no partition cori-gpu" in str(failed.exception)
    few = json.loads(runner.invoke(app, [*arguments, "cori", "--processes", "8"]).stdout)
    assert all("8 processes, published from 512 to 4096" in each["extrapolating"] for each in few["predictions"])


def test_thousands_of_processes_are_priced_with_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab.parallel import published_profile

    fits = []
    monkeypatch.setattr(published_profile, "fit_bytes", lambda *columns: fits.append(1) or (1e-3, 1e-3))
    asked, sharing = workload([2048, 16]), Sharing(2048, Striping(248, 64, 248))
    predict_parallel(asked, [Layout((1, 16))], sharing, published_profile.published_profile("cori", 2048))
    assert len(fits) == 2, "one for each library"


class Recorded(io.FileIO):
    """A file that remembers what is read of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self.lengths: list[int] = []

    def readinto(self, buffer: Any) -> int:
        found = super().readinto(buffer) or 0
        self.lengths.append(found)
        return found


@pytest.mark.parametrize("partition", PARTITIONS)
def test_h5py_makes_the_requests_of_each_process(tmp_path: Path, partition: Any) -> None:
    h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    path, layout, sharing = tmp_path / "a.h5", Layout((32, 16)), Sharing(3, Striping(1, 1 << 30, 1), partition)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(256 * 64, dtype=np.float32).reshape(256, 64), chunks=(32, 16))
    asked = workload([256, 64], select="list", boxes=[{"start": [5, 3], "shape": [200, 60]}])
    predicted = count_processes(asked, layout, Hdf5(), sharing)
    for part, requests in zip(divided(asked, layout, 3, partition), predicted, strict=True):
        recorded = Recorded(path)
        with h5py.File(recorded, "r") as file:
            for step in part.steps():
                file["x"][step.selection.slices]  # type: ignore[union-attr]
        assert recorded.lengths.count(32 * 16 * 4) == int((requests.nbytes == 32 * 16 * 4).sum())
