"""A trace in words: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from hyperslab.advise.results import Counsel
from hyperslab.advise.tip import Tip
from hyperslab.archive.views.display import counted
from hyperslab.model.terms import Phase
from hyperslab.quantities import digits, nbytes_text, seconds_text, set_nbytes_text
from hyperslab.trace.summaries import ArraySummary, busy_seconds
from hyperslab.trace.trace import Trace

Told = tuple[ArraySummary, Counsel | str]
"""What a trace says of an array, and the counsel on it, or why there is none."""
PARTS: dict[str, tuple[Phase, ...]] = {
    "device": ("device_read", "device_write", "cache_read"),
    "decoding": ("codec",),
    "copying": ("memory_copy",),
    "library": ("per_chunk", "per_call"),
}
"""The parts into which predicted seconds are split. The page cache stands for the device."""
CACHE_WORDS = {
    "cold": "from a cold cache", "page-warm": "from the page cache", "library-warm": "from the library's own cache",
    "new": "into a new array",
}  # fmt: skip


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


def ranked_tips(told: Sequence[Told]) -> list[tuple[Counsel, Tip]]:
    """The tips of all arrays: first what opens them once, then what saves most, if that is known."""
    pairs = [(each, tip) for _, each in told if not isinstance(each, str) for tip in each.tips]
    return sorted(pairs, key=lambda pair: (not pair[1].opens_once, -_saved(*pair)))


def _saved(each: Counsel, tip: Tip) -> float:
    return 0.0 if each.now.unknown or tip.price.unknown else each.now.seconds - tip.price.seconds


def advice_lines(told: Sequence[Told]) -> list[tuple[str, str]]:
    """What to do, as pairs of a sentence and the exact call."""
    return [(f"{each.array.title}: {tip.said} ({_seconds(each, tip)})", tip.call) for each, tip in ranked_tips(told)]


def counsel_lines(each: Counsel) -> list[str]:
    """What the calls of a program take today and what helps, for commands that show other things beside it."""
    calls = f"{counted(each.access_count, 'access', 'accesses')} of {', '.join(one.name for one in each.demands)}"
    if each.now.unknown:
        first = f"{calls}: seconds unknown: {each.now.unknown[0]}"
    else:
        first = f"{calls}: predicted {seconds_text(each.now.seconds)}{_of(each)}, {CACHE_WORDS[each.cache]}"
    lines = [part for said, call in tip_lines(each) for part in (f"  {said}", *([f"     {call}"] if call else []))]
    return [first, *each.doubts, *(["without rewriting any data:", *lines] if lines else [])]


def tip_lines(each: Counsel) -> list[tuple[str, str]]:
    """The tips for one array, as pairs of a sentence and the exact call."""
    return [(f"{tip.said} ({_seconds(each, tip)})", tip.call) for tip in each.tips]


def _seconds(each: Counsel, tip: Tip) -> str:
    unknown = (*each.now.unknown, *tip.price.unknown)
    if unknown:
        return f"seconds unknown: {unknown[0]}"
    return f"predicted {seconds_text(tip.price.seconds)} instead of {seconds_text(each.now.seconds)}{_of(each)}"


def _of(each: Counsel) -> str:
    """Of how many accesses the seconds are, if not of all."""
    return "" if each.priced_count == each.access_count else f" for {each.priced_count:,} of its accesses"


def facts(one: ArraySummary, told: Counsel | str) -> list[tuple[str, str]]:
    """What an array is, and what was done with it, as pairs of a name and words."""
    array = one.array
    shape = " × ".join(map(str, array.shape)) or "a single element"
    stored = "chunks of " + " × ".join(map(str, array.chunks)) if array.chunks else array.layout
    encoded = f", {', '.join(array.filters)}" if array.filters else ""
    rows = [("array", f"{shape}, {array.dtype}, {stored}{encoded}; {array.library}, {array.file}")]
    rows += [("pattern" if place == 0 else "", each.words) for place, each in enumerate(one.patterns)]
    rows.append(("amount", f"{nbytes_text(one.nbytes)} in {seconds_text(one.seconds)}, {_throughput(one)}"))
    rows += _split(told)
    if one.opening_count > 1:
        files = f"{one.file_opening_count:,} times" if one.file_opening_count > 1 else "once"
        rows.append(("opened", f"the array {one.opening_count:,} times, its file {files}"))
    if one.touched_count is not None and one.touch_count is not None:
        rows.append(
            ("chunks", f"{one.touched_count:,} of {one.chunk_count:,} touched, {one.touch_count:,} times in all")
        )
    if one.read_amplification is not None:
        rows.append(
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
        rows.append(("decoded", f"{one.decoded_count:,} chunks with {by}{often}"))
    if one.analysed_count < len(one.rows):
        rows.append(("", f"the figures on chunks are those of the first {one.analysed_count:,} accesses"))
    return rows


def parts_of(told: Counsel | str) -> dict[str, float] | None:
    """The predicted seconds of what the program did, by `PARTS`; None if they are not known."""
    if isinstance(told, str) or told.now.unknown:
        return None
    phases = told.now.phases
    return {name: sum(phases.get(phase, 0.0) for phase in listed) for name, listed in PARTS.items()}


def _split(told: Counsel | str) -> list[tuple[str, str]]:
    """The predicted seconds beside the measured ones, and what they consist of."""
    if isinstance(told, str):
        return []
    parts, doubts = parts_of(told), [("but", said) for said in told.doubts]
    if parts is None:
        return doubts
    words = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in parts.items() if seconds > 0)
    measured = seconds_text(sum(one.measured_seconds or 0.0 for one in told.demands))
    measured += ", without opening it" if any(one.is_opened_again for one in told.demands) else ""
    measured += ", without netCDF4's own work" if told.now.own_seconds > 0 else ""
    total = seconds_text(told.now.seconds)
    predicted = f"{total}{_of(told)}, {CACHE_WORDS[told.cache]} (measured: {measured}): {words}"
    return [("predicted", predicted), *doubts]


def _cache_text(one: ArraySummary) -> str:
    return f"a chunk cache of {set_nbytes_text(one.array.cache_nbytes or 0)}"


def _throughput(one: ArraySummary) -> str:
    return f"{one.nbytes / one.seconds / 1e6:.3g} MB/s" if one.seconds > 0 else "no time"


def measured_where(trace: Trace) -> str:
    """What the seconds of a trace include."""
    libraries = {array.library for array in trace.arrays}
    said = "Seconds are those of the library's calls, as the program saw them."
    return said + (" zarr-python's calls overlap each other." if "zarr" in libraries else "")
