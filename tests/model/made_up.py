"""Cells with seconds computed from known coefficients, and store profiles fitted to them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from hyperslab.lab.environment import observe
from hyperslab.model import EXTENDED, Observation, StoreProfile, Variables, fit
from hyperslab.model.costs import Coefficients
from hyperslab.model.terms import values

# Seconds per unit.
TRUTH = {
    "n_memcpy": 2e-8, "s_memcpy": 2e-10, "n_cache": 3e-6, "s_cache": 3e-10, "n_rdisk": 8e-5, "s_rdisk": 8e-10,
    "n_rseek": 2e-4, "n_rindex": 1e-4, "n_wdisk": 5e-5, "s_wdisk": 1e-9, "n_wseek": 3e-5, "n_windex": 2e-5,
    "n_array": 1e-3, "n_made": 2e-3, "n_call": 5e-5, "n_chunk": 4e-6, "n_far": 1e-8, "n_element": 1e-7,
    "s_exposed": 8e-10, "s_covered": 8e-10,
}  # fmt: skip
CACHES = ("cold", "page-warm", "library-warm")
# What remains if nothing comes from the device, or nothing at all.
GONE = {
    "cold": ("n_cache", "s_cache"),
    "page-warm": ("n_rdisk", "s_rdisk", "n_rseek", "n_rindex"),
    "library-warm": ("n_rdisk", "s_rdisk", "n_rseek", "n_rindex", "n_cache", "s_cache", "n_array", "n_absent"),
}


def variables(**given: float) -> Variables:
    """Variables that are 0 unless given."""
    return Variables(**{name: float(given.get(name, 0.0)) for name in Variables._fields})


def made_up_cells(
    library: str,
    operation: Any,
    count: int,
    seed: int,
    *,
    noise: float = 0.0,
    overlaps: bool = False,
    codec: str | None = None,
    **more: float,
) -> list[Observation]:
    """Cells of all three cache states, with variables over several decades."""
    random = np.random.default_rng(seed)
    truth = TRUTH | more
    terms = EXTENDED.terms(library, operation, () if codec is None else (codec,))
    found = []
    for position in range(count):
        cache: Any = CACHES[position % 3]
        drawn = {name: 10.0 ** random.uniform(2, 8 if name[0] == "s" else 4) for name in truth}
        drawn |= {"n_array": 1.0, "n_made": float(position % 2)} | dict.fromkeys(GONE[cache], 0.0)
        # Without overlap, what copying covers costs as much as the rest; with it, nothing.
        covered = drawn["s_rdisk"] * random.uniform()
        drawn |= {"s_covered": covered, "s_exposed": drawn["s_rdisk"] - covered}
        made = variables(**drawn)
        rates = truth | ({"s_covered": 0.0} if overlaps else {})
        factors = values(terms, made, codec)
        parts = factors * np.array([rates.get(term.variable, 0.0) for term in terms])
        seconds = float(parts.sum() * np.exp(random.normal(0, noise)))
        found.append(Observation(library, operation, cache, f"made up {position}", "10x10", codec, made, seconds))
    return found


def made_up_store_profile(
    tmp_path: Any, libraries: tuple[str, ...] = ("hdf5", "zarr"), slow: float = 1000.0
) -> StoreProfile:
    """A profile of this machine. Each library takes `slow` times as long per chunk as the one before."""
    kinds = [
        _made_up_fit(library, operation, position, 4e-6 * slow**position)
        for position, library in enumerate(libraries)
        for operation in ("read", "write")
    ]
    return StoreProfile(
        environment=replace(observe(tmp_path, []), libraries={}),
        store="local disk",
        made_at="2026-11-22T00:00:00+00:00",
        scale="made up",
        hyperslab_version="0",
        cells=tuple(cell for cells, _ in kinds for cell in cells),
        fits=tuple(made for _, made in kinds),
    )


@cache
def _made_up_fit(
    library: str, operation: Any, seed: int, n_chunk: float
) -> tuple[tuple[Observation, ...], Coefficients]:
    """Cells and what is fitted to them: many tests want the same, and a fit takes a third of a second."""
    cells = tuple(made_up_cells(library, operation, 90, seed, noise=0.02, n_chunk=n_chunk))
    return cells, fit(cells, library, operation)


def with_codecs(made: StoreProfile, *codecs: str) -> StoreProfile:
    """The profile trained on arrays with each of these codecs instead."""
    cells, fits = _fits_with_codecs(codecs)
    return replace(made, cells=cells, fits=fits)


@cache
def _fits_with_codecs(codecs: tuple[str, ...]) -> tuple[tuple[Observation, ...], tuple[Coefficients, ...]]:
    costs = {"s_decode": 1e-9, "s_encode": 1e-8}
    cells = tuple(
        cell
        for seed, library in enumerate(("hdf5", "zarr"))
        for operation in ("read", "write")
        for codec in codecs
        for cell in made_up_cells(library, operation, 90, seed, noise=0.02, codec=codec, **costs)
    )
    kinds = dict.fromkeys((cell.library, cell.operation) for cell in cells)
    return cells, tuple(fit(cells, library, operation) for library, operation in kinds)
