"""Advice for twelve files and the programs that use them: its structure, which does not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from advice_cases import CASES, IDIOMS, Case, trace_of
from known_codecs import known_codecs

import hyperslab as hs
from hyperslab.advise.advising import advise
from hyperslab.advise.asking import ask
from hyperslab.advise.candidate import netcdf_cache
from hyperslab.advise.counsel import today_of
from hyperslab.advise.formats import codecs_of, encodings_of
from hyperslab.advise.limits import Limits
from hyperslab.advise.results import ArrayAdvice
from hyperslab.advise.verdict import ALIKE
from hyperslab.model.far_store import LIBRARY
from hyperslab.model.store_profile import StoreProfile
from hyperslab.running.command import library

pytest.importorskip("netCDF4")


def advice_for(case: Case, folder: Path, profile: StoreProfile, limits: Limits | None = None) -> ArrayAdvice:
    file = case.make(folder, 0.3)
    trace_of(case, file, folder / "run.trace")
    ((array, demands),) = ask(f"{file}:{case.array}", [(folder / "run.trace", 1.0)], None, None).arrays
    limits = limits or Limits()
    encodings = encodings_of(array, limits, profile)
    # A ranking is sound whatever the rates of codecs are.
    return advise(array, demands, profile, limits, known_codecs(array, encodings), encodings)


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory, profile: StoreProfile) -> Callable[[str], ArrayAdvice]:
    """Gives the advice for a case by its name. It is computed once."""
    cases = {case.name: case for case in CASES if not case.is_far}
    return cache(lambda name: advice_for(cases[name], tmp_path_factory.mktemp("case"), profile))


def touched(advice: ArrayAdvice, chunk: tuple[int, ...]) -> float:
    return sum(float(demand.touches(chunk).sum()) for demand in advice.demands)


def check_order(advice: ArrayAdvice) -> None:
    """The fastest first; those that can be advised and are as good as the best stand together, by what they change."""
    priced = [one for one in advice.options if one.seconds is not None]
    assert priced == advice.options[: len(priced)], "what has no price is last"
    known = [one for one in priced if one.refused is None]
    assert known == priced[: len(known)], "what convert refuses is behind the others"
    best = min((one.seconds for one in known if one.can_be_advised), default=0.0)
    alike = [one for one in known if one.can_be_advised and one.seconds <= best * ALIKE]
    others = [one for one in known if one not in alike]
    faster = [one for one in others if one.seconds < best]
    assert known == faster + alike + others[len(faster) :]
    assert [one.seconds for one in others] == sorted(one.seconds for one in others)
    now = advice.today.candidate
    changes = [(one.candidate.format != now.format, one.candidate.order is not None, one.candidate.reader != now.reader,
                one.candidate.cache_nbytes != now.cache_nbytes) for one in alike]  # fmt: skip
    assert changes == sorted(changes)


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.name for case in CASES if not case.is_far and case not in IDIOMS])
def test_the_ranking_of_a_case_is_sound(name: str, near: Callable[[str], ArrayAdvice]) -> None:
    advice = near(name)
    assert all(one.seconds > 0 for one in advice.options if one.seconds is not None)
    check_order(advice)
    assert sum(one.candidate.is_today for one in advice.options) == 1
    assert advice.considered >= 30
    assert any("default chunks" in one.candidate.label for one in advice.options)
    best = advice.options[0]
    assert best.seconds is not None
    assert advice.today.seconds is not None
    assert best.seconds <= advice.today.seconds * ALIKE
    for one in advice.options:
        if not one.candidate.is_today and one.seconds is not None:
            assert one.conversion_seconds is not None
            assert one.conversion_seconds > 0
    # Nothing is advised whose gain lies inside its interval.
    if not advice.keeps:
        assert advice.chosen.gain is not None
        assert advice.chosen.gain.low > 1
    assert advice.verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ["climate: series from maps", "climate: maps from series", "append-heavy logs",
                                  "cut-outs of sky"])  # fmt: skip
def test_a_bad_layout_is_rewritten_with_fewer_chunks_for_each_call(
    name: str, near: Callable[[str], ArrayAdvice]
) -> None:
    advice = near(name)
    assert not advice.keeps, advice.verdict
    chosen, today = advice.chosen.candidate, advice.today.candidate
    if not chosen.layout.contiguous:
        assert touched(advice, chosen.layout.chunk_shape) < touched(advice, today.layout.chunk_shape) / 2


@pytest.mark.slow
@pytest.mark.parametrize("case", [one for one in CASES if one.is_far], ids=lambda case: case.name)
def test_far_cases_are_priced_by_requests(case: Case, tmp_path: Path, far: StoreProfile) -> None:
    advice = advice_for(case, tmp_path, far, Limits(price_per_request=4e-7))
    assert {one.candidate.reader for one in advice.options} == {"hyperslab"}
    assert advice.today.price.requests > 0
    priced = [one for one in advice.options if one.seconds is not None]
    assert priced[0].price.requests <= advice.today.price.requests
    for one in priced:
        assert one.request_price == pytest.approx(one.price.requests * 4e-7)


@pytest.mark.skipif(library() is None, reason="no library to preload: crates/hyperslab-preload/build.sh")
@pytest.mark.parametrize("case", IDIOMS, ids=lambda case: case.name)
def test_the_program_of_each_idiom_is_traced_and_its_array_found(case: Case, tmp_path: Path) -> None:
    for name in ("xarray", "pandas", "zarr", "tables"):
        pytest.importorskip(name)
    file = case.make(tmp_path, 0.05)
    trace_of(case, file, tmp_path / "run.trace")
    ((array, (demand, *_)),) = ask(f"{file}:{case.array}", [(tmp_path / "run.trace", 1.0)], None, None).arrays
    assert array.name == f"/{case.array}"
    assert len(demand.steps) >= 15
    assert not demand.writes


@pytest.fixture(scope="module")
def far(profile: StoreProfile) -> StoreProfile:
    """A profile of a server: 40 ms for a round, and what our engine reads."""
    from made_up import made_up_cells

    from hyperslab.model import fit

    cells = made_up_cells(LIBRARY.name, "read", 90, 4, noise=0.02, n_rseek=0.04, n_rdisk=1e-3)
    kinds = (fit(cells, LIBRARY.name, "read"),)
    return replace(profile, cells=tuple(cells), fits=kinds, is_far=True, store="a server", _fitted={})


def test_a_good_layout_is_kept(tmp_path: Path, profile: StoreProfile) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "good.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.random.default_rng(1).random((64, 4096), "f4"), chunks=(1, 4096))
    with hs.record() as trace, h5py.File(path) as file:
        for row in range(64):
            file["x"][row]
    trace.save(tmp_path / "run.trace")
    ((array, demands),) = ask(str(path), [(tmp_path / "run.trace", 1.0)], None, None).arrays
    advice = advise(array, demands, profile, Limits(), {}, encodings_of(array, Limits(), profile))
    assert advice.keeps, advice.verdict
    assert "keep" in advice.verdict


def test_the_first_row_that_can_be_advised_is_the_one_that_is(maps: Path, profile: StoreProfile) -> None:
    ((array, demands),) = ask(f"{maps}:sst", [], None, "series").arrays
    encodings = encodings_of(array, Limits(), profile)
    found = advise(array, demands, profile, Limits(), codecs_of(array, encodings, profile), encodings)
    first = next(one for one in found.options if one.can_be_advised)
    assert found.keeps or (found.chosen is first and first.candidate.title in found.verdict)
    check_order(found)
    # The same check says no to any two options that change places without being alike.
    slowest = [place for place, one in enumerate(found.options) if one.seconds is not None][-1]
    assert found.options[slowest].seconds > 2 * found.options[0].seconds
    for moved in (found.options[::-1], [found.options[slowest], *found.options[:slowest]]):
        with pytest.raises(AssertionError):
            check_order(replace(found, options=moved))


@pytest.mark.parametrize(
    ("caller", "cache", "said"),
    [("netCDF", None, "netCDF4"), ("HDF5", netcdf_cache()[0], "libhdf5"), ("h5py", None, "h5py"),
     ("PyTables", None, "PyTables"), ("HDF5", 3 << 20, "libhdf5, cache 3 MiB"), ("", None, "netCDF4")],
)  # fmt: skip
def test_who_makes_the_calls_is_said(maps: Path, profile: StoreProfile, caller: str, cache: Any, said: str) -> None:
    ((array, demands),) = ask(f"{maps}:sst", [], None, "maps").arrays
    made = [replace(demand, library="hdf5", caller=caller, cache_nbytes=cache) for demand in demands]
    today = today_of(replace(array, format="netcdf4"), made, profile)
    assert today.reader_text == said


@pytest.mark.parametrize(
    ("caller", "call"),
    [("h5py", "h5py.File("), ("netCDF", "set_var_chunk_cache("), ("HDF5", "H5Pset_cache("),
     ("PyTables", "CHUNK_CACHE_SIZE=")],
)  # fmt: skip
def test_the_tip_of_a_larger_cache_names_the_library_of_the_traced_program(
    maps: Path, profile: StoreProfile, caller: str, call: str
) -> None:
    """A program that reads a netCDF-4 file with h5py was told to set the cache of netCDF4."""
    ((stored, demands),) = ask(f"{maps}:sst", [], None, "series 5").arrays
    library = "hdf5" if caller else None
    made = [replace(demand, library=library, caller=caller, cache_nbytes=9000, cache_slots=521) for demand in demands]
    array = replace(stored, format="netcdf4")
    encodings = encodings_of(array, Limits(), profile)
    found = advise(array, made, profile, Limits(), codecs_of(array, encodings, profile), encodings)
    (tip,) = [tip for tip in found.tips if "chunk cache" in tip.what]
    assert call in tip.call
    assert "\n" not in tip.call
