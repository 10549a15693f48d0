"""Each row has two columns: the program's own library, and `hyperslab run`. What needs `run` is marked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperslab.advise.advising import advise
from hyperslab.advise.asking import ask
from hyperslab.advise.documents import document
from hyperslab.advise.formats import codecs_of, encodings_of
from hyperslab.advise.judging import judge
from hyperslab.advise.limits import Limits
from hyperslab.advise.pricing import gain
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.advise.verdict import choose
from hyperslab.advise.verifying import Verification, Verified
from hyperslab.model.store_profile import StoreProfile
from hyperslab.report.advice_rows import HEADER, cells_of


def advised(path: Path, profile: StoreProfile, words: str = "series", **made: Any) -> ArrayAdvice:
    ((array, demands),) = ask(f"{path}:sst", [], None, words).arrays
    asked = [replace(demand, **made) for demand in demands]
    encodings = encodings_of(array, Limits(), profile, asked)
    return advise(array, asked, profile, Limits(), codecs_of(array, encodings, profile), encodings)


def test_every_row_has_both_columns(maps: Path, run_profile: StoreProfile) -> None:
    found = advised(maps, run_profile, "everything", library="hdf5", caller="h5py")
    assert len(found.options) > 3
    for one in found.options:
        assert one.candidate.reader == "hdf5", "the first column is the library that the program has"
        assert one.by_run is not None
        assert one.by_run.file_key == one.candidate.file_key
        assert one.run_seconds
        assert one.seconds != one.run_seconds
    files = [(one.candidate.file_key, one.candidate.cache_nbytes) for one in found.options]
    assert len(set(files)) == len(files), "a file has one row"
    shown = document(found)
    assert [one["with_run"]["seconds"] for one in shown["options"]] == [one.run_seconds for one in found.options]
    place = HEADER.index("with run")
    assert all("×" in cells_of(one, found)[place] for one in found.options)


def test_the_run_column_of_today_is_the_price_of_the_tip(maps: Path, run_profile: StoreProfile) -> None:
    found = advised(maps, run_profile, library="hdf5", caller="h5py")
    tips = [tip for tip in found.tips if tip.call.startswith("hyperslab run")]
    assert [tip.price.seconds for tip in tips] in ([], [found.today.run_seconds])


@pytest.mark.parametrize("made", [{"library": "hyperslab"}, {"caller": "POSIX"}])
def test_there_is_no_run_column_for_programs_that_run_does_not_serve(
    maps: Path, run_profile: StoreProfile, made: dict[str, Any]
) -> None:
    found = advised(maps, run_profile, **made)
    assert not any(one.by_run for one in found.options)
    assert {cells_of(one, found)[HEADER.index("with run")] for one in found.options} == {"–"}
    assert {one["with_run"] for one in document(found)["options"]} == {None}


def test_there_is_none_for_programs_that_write(maps: Path, run_profile: StoreProfile) -> None:
    assert not any(one.by_run for one in advised(maps, run_profile, "appends").options)


def test_a_layout_whose_reads_are_too_small_to_be_served_has_none(tmp_path: Path, run_profile: StoreProfile) -> None:
    """`hyperslab run` leaves small reads to libhdf5, so a price by our engine would be a promise that it breaks."""
    h5py = pytest.importorskip("h5py")
    import hyperslab as hs

    with h5py.File(tmp_path / "small.h5", "w") as file:
        file.create_dataset("sst", data=np.zeros((64, 96), "f4"), chunks=(8, 8), compression="gzip")
    with hs.record() as trace, h5py.File(tmp_path / "small.h5") as file:
        file["sst"][:]
    ((array, demands),) = ask(str(tmp_path / "small.h5"), [(trace, 1.0)], None, None).arrays
    encodings = encodings_of(array, Limits(), run_profile, demands)
    found = advise(array, demands, run_profile, Limits(), codecs_of(array, encodings, run_profile), encodings)
    whole = [one for one in found.options if one.candidate.layout.contiguous]
    assert whole
    assert not any(one.by_run for one in whole)


def with_prices(found: ArrayAdvice, profile: StoreProfile, plain: float, run: float | None) -> ArrayAdvice:
    """The first option with a plain price so many times as fast as today's, and another one under `run`."""
    first = next(one for one in found.options if one.can_be_advised)
    now = found.today
    options = []
    for one in (now, first):
        times = (1.0, None) if one is now else (plain, run)
        options.append(priced(one, now, profile, *times))
    again = replace(found, tips=[], options=options, today=options[0])
    choose(again, profile)
    return again


def priced(one: Option, now: Option, profile: StoreProfile, plain: float, run: float | None) -> Option:
    price = replace(now.price, seconds=now.price.seconds / plain)
    run_price = None if run is None else replace(now.price, seconds=now.price.seconds / run)
    over = None if run_price is None else gain(profile, now.price, run_price, ("hdf5", "hyperslab"))
    known = gain(profile, now.price, price, ("hdf5", "hdf5"))
    return replace(one, price=price, gain=known, run_price=run_price, run_gain=over)


def test_what_helps_under_run_only_is_marked(maps: Path, run_profile: StoreProfile) -> None:
    found = advised(maps, run_profile, library="hdf5", caller="h5py")
    marked = with_prices(found, run_profile, 1.0, 100.0)
    assert marked.needs_run
    assert marked.verdict.startswith("with `hyperslab run`: rewrite as ")
    assert "without `run`, " in marked.verdict
    assert marked.chosen.candidate == marked.options[1].candidate
    pays = HEADER.index("pays after")
    assert cells_of(marked.chosen, marked)[pays].endswith(("run", "runs"))
    assert cells_of(replace(marked.chosen), marked)[pays] == "never", "without `run`, nothing is won"
    nothing = with_prices(found, run_profile, 1.0, 1.0)
    assert (nothing.needs_run, nothing.keeps, nothing.with_run) == (False, True, None)


def test_what_helps_without_run_comes_first_and_run_second(maps: Path, run_profile: StoreProfile) -> None:
    found = advised(maps, run_profile, library="hdf5", caller="h5py")
    first = with_prices(found, run_profile, 50.0, 5000.0)
    assert not first.needs_run
    assert first.verdict.startswith("rewrite as ")
    assert "by h5py" in first.verdict
    assert first.with_run is not None
    assert first.with_run.verdict.startswith("the same layout: predicted ")
    assert document(first)["with_run"]["verdict"] == first.with_run.verdict
    alone = with_prices(found, run_profile, 50.0, None)
    assert (alone.needs_run, alone.with_run) == (False, None)


def judged(found: ArrayAdvice, seconds: dict[str, float]) -> ArrayAdvice:
    """The advice after today's file and the first option were measured with these medians, by each of the readers."""
    first = next(one for one in found.options if one.can_be_advised)
    each = []
    for key, took in seconds.items():
        option = found.today if key.startswith("today") else first
        if key.endswith("run"):
            assert option.by_run is not None
            option = replace(option, candidate=option.by_run)
        passes = [took * (1 + 0.01 * place) for place in range(8)]
        each.append(Verified(option, took, took / 2, took * 2, {0: passes}))
    judge(found, Verification("all", each, [1.0]))
    return found


@pytest.mark.parametrize(
    ("seconds", "needs_run", "verdict", "second"),
    [
        ({"today": 4.0, "today run": 1.0, "first": 2.0, "first run": 0.5}, False, "rewrite as", "the same layout"),
        ({"today": 4.0, "today run": 4.0, "first": 4.0, "first run": 0.5}, True, "with `hyperslab run`: rewrite", None),
        ({"today": 4.0, "today run": 0.5, "first": 4.0, "first run": 0.5}, True, "with `hyperslab run`: keep", None),
        ({"today": 4.0, "today run": 4.0, "first": 4.0, "first run": 4.0}, False, "keep what you have", None),
        ({"today": 4.0, "today run": 0.5, "first": 2.0, "first run": 1.0}, False, "rewrite as", "keep the file"),
    ],
)
def test_measuring_keeps_the_two_columns_apart(
    maps: Path, run_profile: StoreProfile, seconds: dict[str, float], needs_run: bool, verdict: str, second: str | None
) -> None:
    found = judged(advised(maps, run_profile, "everything", library="hdf5", caller="h5py"), seconds)
    assert found.needs_run is needs_run
    assert found.verdict.startswith(verdict), found.verdict
    assert (found.with_run is None) is (second is None)
    assert second is None or (found.with_run is not None and found.with_run.verdict.startswith(second))
    assert found.today.measured_run_seconds is not None
