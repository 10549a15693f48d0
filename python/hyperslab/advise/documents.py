"""Advice as JSON."""

from __future__ import annotations

from typing import Any

from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.advise.verdict import pareto


def document(advice: ArrayAdvice) -> dict[str, Any]:
    """A dictionary for JSON."""
    array = advice.array
    front = {one.candidate.key for one in pareto(advice.options)}
    return {
        "array": array.name,
        "file": array.file,
        "alike": [{"file": file, "array": name} for file, name in array.members],
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "calls": [
            {"name": one.name, "calls": len(one.steps), "weight": one.weight, "asked_nbytes": one.asked_nbytes}
            for one in advice.demands
        ],
        "verdict": advice.verdict,
        "keep": advice.keeps,
        "chosen": advice.chosen.candidate.title,
        "tip": None if advice.tip is None else advice.tip.what,
        "needs_run": advice.needs_run,
        "with_run": None
        if advice.with_run is None
        else {
            "chosen": advice.with_run.option.candidate.file_title,
            "verdict": advice.with_run.verdict,
        },
        "counsel": None if advice.counsel is None else advice.counsel.to_dict(),
        "tips": [
            {
                "what": tip.what,
                "call": tip.call,
                "seconds": tip.price.known_seconds,
                "low": tip.price.low,
                "high": None if tip.price.unknown else tip.price.high,
                "gain": None if tip.gain is None else tip.gain.to_dict(),
            }
            for tip in advice.tips
        ],
        "options": [
            {**option_document(one, advice.today), "on_the_pareto_front": one.candidate.key in front}
            for one in advice.options
        ],
        "considered": advice.considered,
        "left_out_by_limits": advice.refused,
        "notes": advice.notes,
        "verified": advice.verified,
    }


def option_document(one: Option, today: Option) -> dict[str, Any]:
    """One row of the ranking as a dictionary for JSON."""
    candidate, layout = one.candidate, one.candidate.layout
    return {
        "title": candidate.title,
        "label": candidate.label,
        "today": candidate.is_today,
        "format": candidate.format,
        "read_by": candidate.reader_text,
        "chunks": None if layout.contiguous else list(layout.chunk_shape),
        "shards": None if layout.shard_shape is None else list(layout.shard_shape),
        "codec": candidate.encoding.codec_text,
        "shuffle": bool(candidate.encoding.shuffle),
        "ratio": layout.ratio,
        "order": None if candidate.order is None else list(candidate.order),
        "cache_nbytes": candidate.cache_nbytes,
        "seconds": one.seconds,
        "low": one.price.low,
        "high": None if one.price.unknown else one.price.high,
        "unknown": list(one.price.unknown),
        "extrapolating": list(one.price.extrapolating),
        "gain": None if one.gain is None else one.gain.to_dict(),
        "with_run": _run_document(one, today),
        "files": one.file_count,
        "stored_nbytes": one.stored_nbytes,
        "requests": one.price.requests,
        "request_price": one.request_price,
        "conversion_seconds": one.conversion_seconds,
        "conversion_interval": None if one.conversion is None else [one.conversion.low, one.conversion.high],
        "conversion_is_estimate": one.conversion is not None and one.conversion.is_estimate,
        "runs_until_it_pays": one.runs_until_it_pays(today),
        "measured_seconds": one.measured_seconds,
        "measured_interval": None if one.measured_interval is None else list(one.measured_interval),
        "reason": one.reason,
        "needs": one.needs,
        "refused": one.refused,
    }


def _run_document(one: Option, today: Option) -> dict[str, Any] | None:
    """The same row under `hyperslab run`; None if that does not serve the calls."""
    price = one.run_price
    if price is None:
        return None
    return {
        "seconds": price.known_seconds,
        "low": price.low,
        "high": None if price.unknown else price.high,
        "unknown": list(price.unknown),
        "gain": None if one.run_gain is None else one.run_gain.to_dict(),
        "runs_until_it_pays": one.runs_until_it_pays(today, with_run=True),
        "measured_seconds": one.measured_run_seconds,
    }
