"""The caption under every figure: what is drawn, n, interval, method, cache, conditions, arrays, machine."""

from __future__ import annotations

from pathlib import Path

from hyperslab.bench.published import make_replay
from hyperslab.bench.records import Summary
from hyperslab.bench.results import Run
from hyperslab.bench.study import Case
from hyperslab.lab.statistics import LEAST_FOR_INTERVAL
from hyperslab.quantities import nbytes_text
from hyperslab.report.views import case_named, sizes
from hyperslab.report.wording import arrays_text, conditions_text, dtype_text, known, trials_text

INTERVAL = "95 % bootstrap interval of the median"
FAIR = "fair (all of opening and closing counted, written until durable, random order, warm-up dropped)"
CACHE = {
    "cold": "cold (proved for each trial)",
    "warm": "warm (proved for each trial)",
    "new": "new file (nothing to read back)",
    "unknown": "unknown (not controlled, as published)",
}
DATA = {
    "uniform": "uniform random (incompressible)",
    "waves": "smooth waves with noise (compressible)",
    "constant": "constant",
    "integers": "integers",
}


def caption(run: Run, drawn: str, shown: list[Summary]) -> str:
    """The caption of a figure that shows the summaries `shown`; `drawn` explains its marks and units."""
    case = case_named(run, shown[0].case)
    parts = [
        drawn,
        _trials(shown),
        f"Method: {method_text(case, shown[0].method)}",
        f"Cache state: {', '.join(dict.fromkeys(CACHE[s.cache] for s in shown))}",
        f"Conditions: {'; '.join(dict.fromkeys(conditions_text(case, s.conditions, s.method) for s in shown))}",
        _arrays(case, shown),
        *([note] if (note := scale_text(run, shown[0].case)) else []),
        f"Machine: {machine_text(run)}",
    ]
    return " ".join(f"{part.rstrip('.')}." for part in parts)


def _trials(shown: list[Summary]) -> str:
    text = f"Accepted trials: {trials_text(s.n for s in shown)} each"
    if any(s.low_seconds is None for s in shown):
        text += f"; no interval where n < {LEAST_FOR_INTERVAL}"
    return text


def _arrays(case: Case | None, shown: list[Summary]) -> str:
    dtype = " or ".join(dict.fromkeys(dtype_text(s.dtype) for s in shown))
    texts = [arrays_text(arrays.shape, arrays.count, dtype) for arrays in sizes(shown)]
    listed = texts[0] if len(texts) == 1 else f"{texts[0]} up to {texts[-1]}"
    return f"Data: {listed}, {data_text(case)}"


def scale_text(run: Run, case: str) -> str:
    """How a case differs from its full size, and whether its reads still ask the same question."""
    return run.description.scale_notes.get(case, "")


def data_text(case: Case | None) -> str:
    """The data in the arrays, in words."""
    if case is None:
        return "unknown"
    if case.data_file is None:
        return DATA.get(case.data, case.data)
    path, colon, array = case.data_file.rpartition(":")  # reports do not say where you keep your files
    return Path(path or array).name + (f"{colon}{array}" if path else "")


def method_text(case: Case | None, method: str) -> str:
    """The method in words; for a published method, with its statistic and its faults."""
    if method != "published":
        return FAIR
    if case is None or case.replay is None:
        return "published"
    faults = "; ".join(text.rstrip(".") for text in faults_of(case))
    return f"published ({statistic_text(case)}), its faults included: {faults or 'none known'}"


def faults_of(case: Case) -> list[str]:
    """The faults of the published method, each a sentence."""
    return list(make_replay(case.replay).faults.values()) if case.replay else []


def statistic_text(case: Case | None) -> str:
    """The statistic that the published method reports."""
    if case is None or case.replay is None:
        return "median"
    return "mean of the trials" if make_replay(case.replay).statistic == "mean" else "best of the trials"


def machine_text(run: Run) -> str:
    """The machine in one line."""
    seen = run.description.environment
    memory = f"{nbytes_text(seen.memory_nbytes)} of memory" if seen.memory_nbytes else "memory unknown"
    return (
        f"{known(seen.cpu)}, {seen.cpu_count} CPUs, {memory}, file system {known(seen.file_system)}; "
        f"hyperslab {run.description.version}, scale {run.description.scale}"
    )
