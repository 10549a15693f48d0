"""Text for quantities: seconds, bytes and intervals with their units. An unknown value is a dash, never a zero.

Bytes that were counted are in decimal units, as those of disks and networks: kB, MB. A size that somebody sets, or that
a format or a library has as a power of two, is in binary units: KiB, MiB.
"""

from __future__ import annotations

from collections.abc import Iterable

UNKNOWN = "–"
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def unit_of(seconds: float) -> tuple[float, str]:
    """The largest unit, as (seconds, name), in which a time is at least one."""
    return next(((size, name) for size, name in _UNITS if seconds >= size), _UNITS[-1])


def seconds_text(seconds: float | None) -> str:
    """A time in a suitable unit, with three significant digits."""
    if seconds is None:
        return UNKNOWN
    size, name = unit_of(seconds)
    return f"{digits(seconds / size)} {name}"


def interval_text(low: float | None, high: float | None) -> str:
    """An interval of times in one unit, for example [1.20 to 1.31] ms."""
    if low is None or high is None:
        return UNKNOWN
    size, name = unit_of(high)
    return f"[{digits(low / size)} to {digits(high / size)}] {name}"


def digits(value: float | None) -> str:
    """A number with three significant digits; only very small and very large numbers have an exponent."""
    if value is None:
        return UNKNOWN
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    decimals = 2 if value == 0 else max(0, 2 - _magnitude(value))
    return f"{value:,.{decimals}f}"


def _magnitude(value: float) -> int:
    """The power of ten of a number that is rounded to three digits."""
    return int(f"{abs(value):.2e}".partition("e")[2])


def nbytes_text(nbytes: float | None) -> str:
    """Bytes that were counted, or their mean, in decimal units."""
    if nbytes is None:
        return UNKNOWN
    for size, name in ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if nbytes >= size * 0.9995:  # which would be rounded to a thousand of the next unit
            return f"{digits(nbytes / size)} {name}"
    return f"{round(nbytes)} B"


def set_nbytes_text(nbytes: int) -> str:
    """A size that somebody sets, in binary units: 512 KiB, 1 MiB."""
    for size, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= size:
            return f"{nbytes / size:.4g} {name}"
    return f"{nbytes} B"


def names_text(names: Iterable[str]) -> str:
    """A list of names for a sentence, such as "a, b and c"; names with commas are set off by semicolons."""
    *first, last = list(names)
    if any(", " in name for name in first):
        return f"{'; '.join(first)}; and {last}"
    return f"{', '.join(first)} and {last}" if first else last
