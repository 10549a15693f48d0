"""A trace in words: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from hyperslab.archive.display import counted
from hyperslab.quantities import digits, nbytes_text, seconds_text
from hyperslab.report.trace_advice import Advice
from hyperslab.report.trace_prices import ArrayPrices
from hyperslab.trace.summaries import ArraySummary, busy_seconds
from hyperslab.trace.trace import Trace


def headline(trace: Trace, summaries: Sequence[ArraySummary]) -> str:
    """One sentence on the whole program."""
    if not summaries:
        return "No access to an array was seen."
    busy = busy_seconds(trace)
    names = {(one.array.file, one.array.array) for one in summaries}
    what = f"{counted(len(trace), 'access', 'accesses')} to {counted(len(names), 'array', 'arrays')}"
    total = trace.seconds
    share = f", {100 * busy / total:.0f} % of its {seconds_text(total)}" if total else ""
    return f"{what}: {seconds_text(busy)} in reading and writing{share}."


def advice_lines(advice: Sequence[Advice], has_prices: bool) -> list[tuple[str, str]]:
    """What to do, as pairs of a sentence and the exact call."""
    found = []
    for one in advice:
        if one.seconds_now is not None and one.seconds_then is not None:
            gain = f"predicted {seconds_text(one.seconds_then)} instead of {seconds_text(one.seconds_now)}"
            gain += f" for its first {one.priced_count:,} accesses" if one.priced_count is not None else ""
        else:
            gain = f"seconds unknown: {_why_unknown(one, has_prices)}"
        found.append((f"{one.array}: {one.what} ({gain})", one.call))
    return found


def _why_unknown(one: Advice, has_prices: bool) -> str:
    if one.is_elsewhere:
        return "no store profile says what it costs where this file is"
    return "the calibration does not cover this" if has_prices else "run `hyperslab calibrate` once"


def facts(one: ArraySummary, prices: ArrayPrices | None = None) -> list[tuple[str, str]]:
    """What an array is, and what was done with it, as pairs of a name and words."""
    array = one.array
    shape = " × ".join(map(str, array.shape)) or "a single element"
    stored = "chunks of " + " × ".join(map(str, array.chunks)) if array.chunks else array.layout
    encoded = f", {', '.join(array.filters)}" if array.filters else ""
    found = [("array", f"{shape}, {array.dtype}, {stored}{encoded}; {array.library}, {array.file}")]
    found += [("pattern" if place == 0 else "", each.words) for place, each in enumerate(one.patterns)]
    found.append(("amount", f"{nbytes_text(one.nbytes)} in {seconds_text(one.seconds)}, {_throughput(one)}"))
    found += _split(one, prices)
    if one.touched_count is not None and one.touch_count is not None:
        found.append(
            ("chunks", f"{one.touched_count:,} of {one.chunk_count:,} touched, {one.touch_count:,} times in all")
        )
    if one.read_amplification is not None:
        found.append(
            (
                "amplification",
                f"the touched chunks hold {digits(one.read_amplification)} times the elements that were asked for",
            )
        )
    if one.decoded_count is not None and one.touched_count:
        again = one.decoded_count - one.touched_count
        often = f", {again:,} of them again" if again > 0 else ", none of them again"
        by = (
            "our cache" if array.library == "hyperslab" else "no cache" if array.library == "zarr" else _cache_text(one)
        )
        found.append(("decoded", f"{one.decoded_count:,} chunks with {by}{often}"))
    if one.analysed_count < len(one.rows):
        found.append(("", f"the figures on chunks are those of the first {one.analysed_count:,} accesses"))
    return found


def _split(one: ArraySummary, prices: ArrayPrices | None) -> list[tuple[str, str]]:
    """The predicted seconds beside the measured ones, and what they consist of."""
    parts = None if prices is None else prices.parts()
    if parts is None:
        return []
    words = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in parts.items() if seconds > 0)
    total, first = sum(parts.values()), None if prices is None else prices.first_count
    of = f" for the first {first:,} accesses" if first is not None else ""
    measured = f"measured: {seconds_text(one.first_seconds(first))}"
    return [("predicted", f"{seconds_text(total)}{of} ({measured}): {words}")]


def _cache_text(one: ArraySummary) -> str:
    return f"a chunk cache of {(one.array.cache_nbytes or 0) / (1 << 20):.3g} MiB"


def _throughput(one: ArraySummary) -> str:
    return f"{one.nbytes / one.seconds / 1e6:.3g} MB/s" if one.seconds > 0 else "no time"


def measured_where(trace: Trace) -> str:
    """What the seconds of a trace include."""
    libraries = {array.library for array in trace.arrays}
    said = "Seconds are those of the library's calls, as the program saw them."
    return said + (" zarr-python's calls overlap each other." if "zarr" in libraries else "")
