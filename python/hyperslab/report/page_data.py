"""The data of the page's figures: one compact JSON document with every summary."""

from __future__ import annotations

import json
from typing import Any

from hyperslab.bench.rankings import headline_metric
from hyperslab.bench.records import BOUNDARIES, METRICS, Summary
from hyperslab.bench.results import Run
from hyperslab.bench.study import Case
from hyperslab.lab.statistics import LEAST_FOR_INTERVAL
from hyperslab.report.captions import CACHE, INTERVAL, data_text, machine_text, method_text, scale_text, statistic_text
from hyperslab.report.lines import bare_metric
from hyperslab.report.palette import in_order, paint_of
from hyperslab.report.views import (
    METRIC_ORDER,
    by_case_and_method,
    case_named,
    decoded_megabytes,
    is_speed_case,
    published_seconds,
)
from hyperslab.report.wording import (
    cache_title,
    conditions_text,
    contender_title,
    dtype_text,
    is_per_array,
    metric_title,
    operation_title,
)

# Columns of a row: first words, which are stored once and referred to by index, then numbers.
WORDS = ("case", "method", "conditions", "format", "operation", "shape", "cache", "metric")
NUMBERS = ("count", "processes", "n", "divisor", "shown", "median", "low", "high", "megabytes")


def page_data(run: Run) -> str:
    """The JSON document, safe inside a script element."""
    summaries = [s for group in by_case_and_method(run).values() for s in group]
    words = list(dict.fromkeys(getattr(s, name) for s in summaries for name in WORDS))
    positions = {word: position for position, word in enumerate(words)}
    document = {
        "columns": [*WORDS, *NUMBERS],
        "wordColumns": len(WORDS),
        "words": words,
        "rows": [[*(positions[getattr(s, name)] for name in WORDS), *_numbers(s)] for s in summaries],
        "cases": {name: _case(run, name, summaries) for name in dict.fromkeys(s.case for s in summaries)},
        "operations": {s.operation: _operation(s) for s in summaries},
        "formats": {name: _paint(name) for name in in_order({s.format for s in summaries})},
        "metrics": {name: _metric(name) for name in (*METRIC_ORDER, *METRICS)},
        "phases": list(BOUNDARIES),
        "caches": {name: {"title": cache_title(name), "text": text} for name, text in CACHE.items()},
        "interval": INTERVAL,
        "leastForInterval": LEAST_FOR_INTERVAL,
        "machine": machine_text(run),
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _numbers(summary: Summary) -> list[float | int | None]:
    divisor = summary.count if is_per_array(summary) else 1
    seconds = (published_seconds(summary), summary.median_seconds, summary.low_seconds, summary.high_seconds)
    return [
        summary.count,
        summary.processes,
        summary.n,
        divisor,
        *map(_rounded, seconds),
        _rounded(decoded_megabytes(summary)),
    ]


def _rounded(value: float | None) -> float | None:
    """Round to six digits, which is more than the timers resolve, to keep the file small."""
    return None if value is None else float(f"{value:.6g}")


def _case(run: Run, name: str, summaries: list[Summary]) -> dict[str, Any]:
    case = case_named(run, name)
    mine = [s for s in summaries if s.case == name]
    return {
        "title": case.title if case else "",
        "source": case.source if case else "",
        "data": data_text(case),
        "scale": scale_text(run, name),
        "dtype": " or ".join(dict.fromkeys(dtype_text(s.dtype) for s in mine)),
        "speed": is_speed_case(name),
        "methods": {method: _method(case, method, mine) for method in dict.fromkeys(s.method for s in mine)},
    }


def _method(case: Case | None, method: str, mine: list[Summary]) -> dict[str, Any]:
    conditions = {s.conditions: conditions_text(case, s.conditions, method) for s in mine if s.method == method}
    statistic = statistic_text(case) if method == "published" else "median of the trials"
    return {"text": method_text(case, method), "statistic": statistic, "conditions": conditions}


def _operation(summary: Summary) -> dict[str, str]:
    label = summary.operation
    return {"title": operation_title(label), "total": headline_metric(label), "alone": bare_metric(summary)}


def _paint(name: str) -> dict[str, str]:
    paint = paint_of(name)
    return {"colour": paint.colour, "symbol": paint.symbol, "title": contender_title(name)}


def _metric(name: str) -> dict[str, str]:
    return {method: metric_title(name, method) for method in ("fair", "published")}
