"""Files are audited side by side, in threads and by the workers of a scheduler; no more are taken than are needed."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import audited_files
import pytest

from hyperslab.audit import auditing
from hyperslab.audit.auditing import audits
from hyperslab.audit.judging import Question
from hyperslab.references import side_by_side
from hyperslab.references.side_by_side import by_threads

KINDS = ["good", "scattered-metadata", "foreign-filters", "unreadable"]


def test_keys_are_taken_as_results_are_wanted() -> None:
    taken: list[int] = []

    def keys():  # type: ignore[no-untyped-def]
        for number in range(10_000):
            taken.append(number)
            yield number

    found = by_threads(lambda key: key * 2, keys(), 4)
    first = [next(found) for _ in range(10)]
    assert all(double == 2 * key for key, double in first)
    found.close()
    assert len(taken) <= 10 + 4 * (side_by_side.MOST_WAITING + 1)


def test_every_key_comes_back_once_and_threads_end() -> None:
    before = threading.active_count()
    assert dict(by_threads(lambda key: -key, range(1000), 3)) == {key: -key for key in range(1000)}
    assert dict(by_threads(lambda key: -key, iter(range(5)), 8)) == {key: -key for key in range(5)}
    assert dict(by_threads(lambda key: key, [], 4)) == {}
    for thread in threading.enumerate():
        if thread.name == "hyperslab-files":
            thread.join(10)
    assert threading.active_count() <= before


@pytest.mark.parametrize("is_of_keys", [True, False])
def test_an_error_ends_it(is_of_keys: bool) -> None:
    def keys():  # type: ignore[no-untyped-def]
        yield from range(100)
        if is_of_keys:
            raise LookupError("keys")

    def work(key: int) -> int:
        if key == 50 and not is_of_keys:
            raise LookupError("work")
        return key

    with pytest.raises(LookupError):
        list(by_threads(work, keys(), 2))


def test_workers_are_sent_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []

    def by_dask(work, tasks, scheduler):  # type: ignore[no-untyped-def]
        sent.extend(pickle.dumps(arguments) for _, arguments in tasks)
        return iter(())

    monkeypatch.setattr(auditing, "by_dask", by_dask)
    url = "https://reader:hidden@data.example.org/a.nc?signature=hidden"
    assert list(audits([url], Question(options={"key": "hidden", "attempts": 2}), scheduler="tcp://nobody")) == []
    assert b"attempts" in sent[0]
    assert b"hidden" not in sent[0]


@pytest.mark.slow
def test_the_workers_of_a_scheduler_find_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="not installed: pip install 'hyperslab[dask]'")
    names = [str(audited_files.drawn(tmp_path, kind, seed)) for kind in KINDS for seed in range(2)]
    question = Question(options={"key": "secret", "attempts": 2}, require="cloud")
    ours = {one.name: one for one in audits(names, question, threads=1)}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        theirs = {one.name: one for one in audits(names, question, scheduler=client)}
    assert theirs == ours
