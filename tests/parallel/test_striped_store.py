"""The striped store: its servers' logs against our counts, and what is left after a kill."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hyperslab.cli import app
from hyperslab.errors import Refused, RunError
from hyperslab.parallel import session
from hyperslab.parallel.experiments import Experiment, quick_training, scores
from hyperslab.parallel.profile import Asked
from hyperslab.parallel.session import (
    BASELINE,
    OURS,
    PAPER,
    SIMULATION,
    calibrate_parallel,
    evaluate_parallel,
    speeds_of,
)
from hyperslab.parallel.simulation import simulate
from hyperslab.parallel.striped_store import namespaces
from hyperslab.parallel.striped_store.store import StoreSpeeds, StripedStore
from hyperslab.parallel.striping import ProcessRequests

reason = namespaces.why_not()


def needs_namespaces(test: Any) -> Any:
    """Mark a test that starts stores, or looks at what one left behind."""
    skipped = pytest.mark.skipif(reason is not None, reason=f"no network namespaces here: {reason}")
    return skipped(pytest.mark.usefixtures("alone")(test))


FAST = StoreSpeeds(mbit_s=800.0, request_seconds=0.0, metadata_seconds=0.0)


def listed(owner: int) -> list[str]:
    text = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    return [
        line for line in (text + links).splitlines() if f"{namespaces.PREFIX}{owner}-" in line or f"hs{owner}o" in line
    ]


def expected(plan: list[ProcessRequests]) -> Counter[tuple[int, int, str, int, int, int]]:
    found: Counter[tuple[int, int, str, int, int, int]] = Counter()
    for process, each in enumerate(plan):
        rows = zip(each.servers, each.nbytes, each.writes, each.objects, each.offsets, strict=True)
        for server, nbytes, writes, name, offset in rows:
            operation = "open" if nbytes < 0 else "write" if writes else "read"
            found[int(server), process, operation, int(name), int(offset), max(int(nbytes), 0)] += 1
    return found


@needs_namespaces
@pytest.mark.slow
def test_the_servers_log_what_we_count() -> None:
    with StripedStore(4, FAST) as store:
        seen: Counter[tuple[int, int, str, int, int, int]] = Counter()
        for library, count in (("hdf5", 1), ("hdf5", 3), ("zarr", 4)):
            for direction in ("write", "read"):
                experiment = Experiment(library, direction, (256, 40), (32, 20), 3, count, "round-robin")  # type: ignore[arg-type]
                plan = experiment.requests()
                assert len(store.run(plan)) == 3
                now = Counter((e.server, e.process, e.operation, e.number, e.offset, e.length) for e in store.logs())
                assert now - seen == expected(plan), experiment.name
                seen = now
        for number in range(5):  # one request after another
            served = [each for each in store.logs() if each.server == number]
            assert all(a.ended <= b.begun for a, b in itertools.pairwise(served))
    assert listed(os.getpid()) == []


@needs_namespaces
@pytest.mark.slow
def test_a_rate_limit_is_kept() -> None:
    nbytes = np.full(8, 250_000.0)
    zeros = np.zeros(8, np.uint64)
    one = ProcessRequests(np.zeros(8, np.uint32), nbytes, np.zeros(8, bool), zeros, zeros, 0)
    with StripedStore(1, StoreSpeeds(40.0, 0.0, 0.0)) as store:
        assert max(store.run([one])) > 0.9 * 2e6 * 8 / 40e6


@needs_namespaces
@pytest.mark.slow
def test_a_killed_server_is_a_clear_failure_and_leaves_nothing() -> None:
    requests = Experiment("zarr", "read", (4096, 64), (256, 64), 2, 4).requests()
    with StripedStore(4, StoreSpeeds(10.0, 0.01, 0.01)) as store:
        store.run(list(Experiment("zarr", "read", (512, 64), (256, 64), 2, 4).requests()))
        store.processes[1].kill()
        with pytest.raises(RunError, match=r"server 1 of the striped store has ended|process . of the striped store"):
            store.run(requests)
    assert listed(os.getpid()) == []


@needs_namespaces
@pytest.mark.slow
@pytest.mark.parametrize("killed_by", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_store_is_removed_by_the_next_start_at_the_latest(killed_by: signal.Signals) -> None:
    command = [sys.executable, "-m", "hyperslab", "lab", "serve-striped", "--servers", "2"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None
    while not started.stdout.readline().startswith("logs"):
        assert started.poll() is None
    assert len(listed(started.pid)) == 6
    started.send_signal(killed_by)
    started.communicate(timeout=120)
    rooms = list(Path(tempfile.gettempdir()).glob(f"{namespaces.ROOM}{started.pid}-*"))
    if killed_by == signal.SIGKILL:
        assert listed(started.pid), "only the next start can remove them"
        assert len(rooms) == 1
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and running(started.pid):
            time.sleep(0.1)
        assert running(started.pid) == [], "the servers end with the store"
        namespaces.remove_left()
    assert listed(started.pid) == []
    assert list(Path(tempfile.gettempdir()).glob(f"{namespaces.ROOM}{started.pid}-*")) == []


@needs_namespaces
@pytest.mark.slow
def test_two_stores_have_different_addresses() -> None:
    with StripedStore(1, FAST) as store:
        asked = "import os; from hyperslab.parallel.striped_store import namespaces as n; os.getpid = lambda: int(%d)"
        text = asked % (os.getpid() + 100) + "; print(n.free_network())"
        other = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.strip()
        assert not store.addresses[0].startswith(f"{other}.")


@needs_namespaces
@pytest.mark.slow
def test_clients_stay_between_runs_and_end_with_the_store() -> None:
    plan = Experiment("hdf5", "read", (64, 16), (16, 16), 2, 1).requests()
    with StripedStore(1, FAST) as store:
        store.run(plan)
        clients = [each.pid for each in store._clients]
        store.run(plan)
        assert [each.pid for each in store._clients] == clients
        store._clients[0].kill()
        store._clients[0].wait()
        with pytest.raises(RunError, match="process 0 of the striped store failed"):
            store.run(plan)
        assert len(store.run(plan)) == 2, "the next run starts others"
        clients = [each.pid for each in store._clients]
    assert not any(Path(f"/proc/{pid}").exists() for pid in clients)


def running(owner: int) -> list[str]:
    found = []
    for name in (f"{namespaces.PREFIX}{owner}-{number}" for number in range(3)):
        found += subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
    return found


@needs_namespaces
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_store_is_calibrated_and_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every library, direction and number of processes, without the smallest chunks: enough to fit all coefficients.
    few_chunks = [each for each in quick_training() if each.chunk_shape[0] > 256]
    assert 0 < len(few_chunks) < len(quick_training())
    monkeypatch.setattr(session, "quick_training", lambda: few_chunks)
    speeds = StoreSpeeds(400.0, 0.002, 0.002)
    profile = calibrate_parallel(speeds, is_tiny=True)
    assert {"hdf5 read", "zarr write"} <= profile.coefficients.keys()
    found = evaluate_parallel(profile, speeds, is_tiny=True).to_dict()["parallel"]
    assert set(found["models"]) == {OURS, PAPER, BASELINE, SIMULATION}
    assert all(math.isfinite(each["rmse_log10"]) for each in found["models"].values())
    # How long a busy machine takes is anyone's guess, but no request is served in less than the store's own time.
    for each in found["experiments"]:
        assert set(each["predicted"]) == set(found["models"])
        assert min(each["predicted"].values()) > 0
        assert min(each["seconds"]) > speeds.request_seconds
    with pytest.raises(ValueError, match="describes another store"):
        evaluate_parallel(profile, StoreSpeeds(), is_tiny=True)


def test_without_namespaces_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "why_not", lambda: "it needs root")
    failed = CliRunner().invoke(app, ["lab", "serve-striped"])
    assert isinstance(failed.exception, Refused)
    assert "cannot run here: it needs root" in str(failed.exception)


def test_simulated_programs_are_slower_with_fewer_servers() -> None:
    speeds = speeds_of(StoreSpeeds())
    seconds = [
        simulate(Experiment("hdf5", "read", (2048, 64), (64, 64), 4, count).requests(), 4, speeds).seconds
        for count in (1, 2, 4)
    ]
    assert seconds[0] > seconds[1] > seconds[2]


def test_scores_count_pairs_that_part() -> None:
    from hyperslab.parallel.experiments import Measured

    def measured(library: str, processes: int, *seconds: float) -> Measured:
        return Measured(Experiment(library, "read", (8, 8), (2, 2), processes, 1), seconds, Asked(1.0, 1.0, 1.0, 1.0))

    cells = [
        measured("hdf5", 1, 1.0, 1.1), measured("zarr", 1, 2.0, 2.1),  # parts
        measured("hdf5", 2, 1.0, 2.0), measured("zarr", 2, 1.5, 3.0),  # overlaps
        measured("hdf5", 3, 4.0), measured("zarr", 3, 3.0),  # predicted the wrong way round
    ]  # fmt: skip
    found = scores(cells, [1.0, 2.0, 1.0, 2.0, 3.0, 4.0])
    assert (found.pairs, found.ties, found.order_right) == (2, 1, 1)


def test_the_takeaway_holds_if_a_gain_on_one_store_is_none_on_another() -> None:
    from hyperslab.parallel.experiments import Measured
    from hyperslab.parallel.paper_figures import figure_experiments
    from hyperslab.parallel.takeaway import gains, judge_gains

    def measured(elsewhere: bool, power: float) -> list[Measured]:
        chosen = figure_experiments(elsewhere=elsewhere)
        return [Measured(each, (each.processes**-power,) * 3, Asked(1.0, 1.0, 1.0, 1.0)) for each in chosen]

    faster, alike = measured(False, 1.0), measured(True, 0.0)
    assert gains(faster, alike)["6a: a table is read"] == pytest.approx({"hdf5": 8.0, "zarr": 8.0})
    assert gains(faster, alike)["10b: VORPAL, a slow metadata server"] == pytest.approx({"hdf5": 1.0, "zarr": 1.0})
    assert judge_gains(faster, alike).verdict == "holds"
    assert judge_gains(faster, measured(True, 1.0)).verdict == "reverses"
    assert judge_gains([], []).verdict == "undecided"


def test_the_papers_figures_are_drawn_from_measurements(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="not installed: pip install 'hyperslab[report]'")
    from made_up_profile import made_up_parallel_profile

    from hyperslab.parallel.experiments import Measured
    from hyperslab.parallel.paper_figures import figure_experiments, paper_figures
    from hyperslab.parallel.session import judge
    from hyperslab.report.paper_parallel_figures import draw_paper_figures, points_of

    measured = [
        Measured(each, (0.2, 0.1, 0.4), Asked(4.0, 4e5, 8.0, 8e5)) for each in figure_experiments(elsewhere=False)
    ]
    made = judge(made_up_parallel_profile(), StoreSpeeds(), measured)
    panels = {figure.number: points_of(made, figure) for figure in paper_figures()}
    assert [point.x for point in panels["7"]["hdf5"]] == [1.0, 2.0, 3.0, 4.0]
    assert [(point.low, point.seconds, point.high) for point in panels["8"]["zarr"]] == [(0.1, 0.2, 0.4)] * 4
    assert panels["10b"] == {}, "the other store was not measured"
    png, svg = draw_paper_figures(made, tmp_path / "figures")
    assert png.stat().st_size > 10_000
    text = svg.read_text()
    assert all(f"Figure {number}" in text for number in ("6a", "6b", "7", "8", "10a"))
    assert "Figure 10b" not in text
