"""The ranking in words, for the terminal and for the page."""

from __future__ import annotations

from hyperslab.advise.price import Gain
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.quantities import UNKNOWN, interval_text, nbytes_text, seconds_text

HEADER = ("layout", "read by", "predicted", "95 % interval", "gain", "with run", "measured", "size", "files",
          "requests", "conversion", "pays after", "why")  # fmt: skip


def cells_of(option: Option, advice: ArrayAdvice) -> tuple[str, ...]:
    """One row of the ranking, with the columns of `HEADER`."""
    candidate, today = option.candidate, advice.today
    mark = "*" if option.price.extrapolating else ""
    label = f"{candidate.label}: " if candidate.label else ""
    order = "" if candidate.order is None else f", axes {candidate.order}"
    return (
        f"{label}{candidate.format} {candidate.shape_text}, {candidate.encoding.text}{order}",
        candidate.reader_text,
        "unknown" if option.seconds is None else seconds_text(option.seconds) + mark,
        UNKNOWN if option.seconds is None else interval_text(option.price.low, option.price.high),
        "today" if candidate.is_today else gain_text(option.gain, brief=True),
        _with_run(option),
        seconds_text(option.measured_seconds),
        nbytes_text(option.stored_nbytes),
        f"{option.file_count:,}",
        _requests(option),
        _conversion(option),
        _pays(option, today, with_run=advice.needs_run and option is advice.chosen),
        _why(option),
    )


def ranking(advice: ArrayAdvice) -> tuple[list[str], list[tuple[str, ...]]]:
    """The titles and rows of the ranking without the columns that say nothing; the layout is first, the reason last."""
    rows = [cells_of(option, advice) for option in advice.options]
    last = len(HEADER) - 1
    kept = [0, *(place for place in range(1, last) if any(row[place] != UNKNOWN for row in rows)), last]
    return [HEADER[place] for place in kept], [tuple(row[place] for place in kept) for row in rows]


def _with_run(option: Option) -> str:
    """The second column: the same file under `hyperslab run`; a dash where that does not serve the calls."""
    price = option.run_price
    if price is None:
        return UNKNOWN
    if price.unknown:
        return "unknown"
    if option.measured_run_seconds is not None:
        return f"{seconds_text(option.measured_run_seconds)}, measured"
    mark = "*" if price.extrapolating else ""
    return f"{seconds_text(price.seconds)}{mark}, {gain_text(option.run_gain, brief=True)}"


def _conversion(option: Option) -> str:
    """What it takes to convert; an estimate has its interval, because it is a wide one."""
    made = option.conversion
    if made is None:
        return UNKNOWN
    if not made.is_estimate:
        return seconds_text(made.seconds)
    return f"about {seconds_text(made.seconds)} {interval_text(made.low, made.high)}"


def _why(option: Option) -> str:
    """The reason, after what speaks against it."""
    against = [] if option.breaks is None else [f"breaks {option.breaks}"]
    against += [] if option.refused is None else [f"not advised: {option.refused}"]
    return "; ".join([*against, *([option.reason] if option.reason else [])])


def gain_text(gain: Gain | None, *, brief: bool = False) -> str:
    """How many times as fast, with the interval; `tie` if the interval does not exclude that nothing is gained."""
    if gain is None:
        return "unknown"
    if brief:
        return f"{_digits(gain.factor)} ×" + ("" if gain.is_sure or gain.high < 1 else ", tie")
    low, high = (_digits(one) for one in (gain.low, gain.high))
    said = f"{_digits(gain.factor)} × [{low} to {high}]"
    return said if gain.is_sure or gain.high < 1 else f"{said}, tie"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def _requests(option: Option) -> str:
    if option.request_price is None:
        return UNKNOWN
    return f"{option.price.requests:,.0f}, {option.request_price:.3g}"


def _pays(option: Option, today: Option, *, with_run: bool) -> str:
    """After how many runs converting has paid; with `run` for what is advised for it only."""
    if option.candidate.is_today:
        return UNKNOWN
    runs = option.runs_until_it_pays(today, with_run=with_run)
    if runs is None:
        return "never" if option.seconds is not None else UNKNOWN
    return f"{runs:,} run{'s' if runs != 1 else ''}"


def tip_lines(advice: ArrayAdvice) -> list[tuple[str, str]]:
    """What helps without rewriting, as pairs of a sentence and the exact call."""
    lines = []
    for tip in advice.tips:
        said = "seconds unknown" if tip.price.unknown else (
            f"predicted {seconds_text(tip.price.seconds)} instead of {seconds_text(advice.today.seconds)}, "
            f"gain {gain_text(tip.gain)}"
        )  # fmt: skip
        lines.append((f"{tip.what[0].upper()}{tip.what[1:]} ({said})", tip.call))
    return lines
