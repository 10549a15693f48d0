"""The simulation: what can be worked out by hand, an independent event loop, and its size."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import few
from hyperslab._core import contention, serve_requests
from hyperslab.parallel.simulation import ServerSpeeds, simulate_columns

SPEEDS = ServerSpeeds(request_seconds=0.001, seconds_per_byte=1e-9, metadata_seconds=0.01)


def by_the_clock(requests: list[list[tuple[int, float, float]]], servers: int) -> list[float]:
    """The same by stepping through events with queues, rather than by times at which servers are free."""
    queues: list[list[tuple[float, int, int]]] = [[] for _ in range(servers)]
    busy: list[int | None] = [None] * servers
    done, ends, order = [0] * len(requests), [0.0] * len(requests), 0
    # At the same time, servers finish first, and processes ask in their order.
    events = [(0.0, process, "asks", -1) for process, each in enumerate(requests) if each]
    heapq.heapify(events)
    while events:
        now, process, what, server = heapq.heappop(events)
        if what == "asks":
            server = requests[process][done[process]][0]
            order += 1
            heapq.heappush(queues[server], (now, process, order))
        else:
            busy[server] = None
        if busy[server] is None and queues[server]:
            _, first, _ = heapq.heappop(queues[server])
            _, service, own = requests[first][done[first]]
            busy[server] = first
            done[first] += 1
            heapq.heappush(events, (now + service, -1, "ends", server))
            if done[first] < len(requests[first]):
                heapq.heappush(events, (now + service + own, first, "asks", -1))
            else:
                ends[first] = now + service + own
    return ends


times = st.floats(0, 10).map(lambda each: round(each, 3))


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), times, times), max_size=12), min_size=1, max_size=6),
)
@settings(max_examples=few(200), deadline=None)
def test_it_serves_as_an_event_loop_does(requests: list[list[tuple[int, float, float]]]) -> None:
    flat = [each for process in requests for each in process]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in requests])]).astype(np.uint64)
    servers, service, own = (list(column) for column in zip(*flat, strict=True)) if flat else ([], [], [])
    ends, busy = serve_requests(starts, np.array(servers, np.uint32), np.array(service, float), np.array(own, float), 4)
    # Requests that arrive at the very same time may be served in another order: then only totals agree.
    assert busy.sum() == pytest.approx(sum(service))
    if len(set(service) | set(own)) == len(service) + len(own):
        assert ends.tolist() == pytest.approx(by_the_clock(requests, 4))


def columns(processes: int, each: int, servers: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    drawn = np.random.default_rng(seed).integers(0, servers, processes * each, dtype=np.uint32)
    return np.arange(0, processes * each + 1, each, dtype=np.uint64), drawn, np.full(processes * each, 1e6)


def test_one_process_waits_for_nobody() -> None:
    found = simulate_columns(*columns(1, 50, 7, 1), data_servers=7, speeds=SPEEDS)
    assert found.seconds == pytest.approx(50 * 0.002)
    assert found.label == "simulation"


def test_one_server_serves_one_at_a_time() -> None:
    found = simulate_columns(*columns(8, 50, 1, 1), data_servers=1, speeds=SPEEDS)
    assert found.seconds == pytest.approx(8 * 50 * 0.002)
    assert found.seconds == pytest.approx(50 * 0.002 * contention(8, 1))


def test_endless_servers_are_as_good_as_one_process() -> None:
    starts, _, nbytes = columns(8, 50, 1, 1)
    servers = np.arange(400, dtype=np.uint32)
    assert simulate_columns(starts, servers, nbytes, 400, SPEEDS).seconds == pytest.approx(50 * 0.002)


def test_the_metadata_server_is_apart() -> None:
    starts, nbytes = np.array([0, 2, 4], np.uint64), np.array([-1.0, 1e6] * 2)
    found = simulate_columns(starts, np.array([2, 0, 2, 1], np.uint32), nbytes, 2, SPEEDS)
    assert found.seconds == pytest.approx(0.01 + 0.01 + 0.002)
    assert found.busy_seconds.tolist() == pytest.approx([0.002, 0.002, 0.02])


@pytest.mark.parametrize(
    ("starts", "servers", "service", "own", "said"),
    [
        ([0, 2], [0], [1.0], [1.0], "starts"),
        ([1, 1], [0], [1.0], [1.0], "starts"),
        ([], [], [], [], "starts"),
        ([0, 1, 0, 1], [0], [1.0], [1.0], "starts"),
        ([0, 1], [4], [1.0], [1.0], "does not exist"),
        ([0, 1], [0], [-1.0], [1.0], "negative"),
        ([0, 1], [0], [1.0], [float("nan")], "not finite"),
        ([0, 1], [0], [1.0, 2.0], [1.0], "different lengths"),
    ],
)
def test_impossible_requests_are_refused(starts: list[int], servers: list[int], service: list[float],
                                         own: list[float], said: str) -> None:  # fmt: skip
    with pytest.raises(ValueError, match=said):
        serve_requests(np.array(starts, np.uint64), np.array(servers, np.uint32), np.array(service), np.array(own), 4)


@pytest.mark.slow
def test_thousands_of_processes_and_ten_million_requests() -> None:
    starts, servers, nbytes = columns(4096, 2442, 248, 3)
    found = simulate_columns(starts, servers, nbytes, 248, SPEEDS)
    perfect = len(nbytes) * 0.002 / 248
    assert perfect < found.seconds < 1.2 * perfect
