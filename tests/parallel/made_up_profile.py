"""A parallel profile with known coefficients."""

from __future__ import annotations

from hyperslab.parallel.profile import ParallelProfile


def made_up_parallel_profile() -> ParallelProfile:
    """Coefficients of a store with 4 servers that was never measured."""
    paper = {"n": 0.001, "s": 2e-9, "n*cf": 0.002, "s*cf": 8e-9}
    formula = {**paper, "n_turns": 0.003, "s_turns": 1e-8}
    coefficients = {f"hdf5 {direction}": dict(formula) for direction in ("read", "write")}
    coefficients |= {f"zarr {direction}": {**formula, "n*p": 0.0005} for direction in ("read", "write")}
    baseline = {key: {"s": 4e-9, "s*cf": 1e-8} for key in coefficients}
    return ParallelProfile("made up", 4, coefficients, dict(coefficients), baseline, dict.fromkeys(coefficients, 0.05))
