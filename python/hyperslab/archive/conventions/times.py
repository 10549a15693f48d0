"""Join times of files with different reference times and units into one array of integers, without rounding.

See section 4.4 of the CF conventions. The days of a calendar are computed here, and agree with cftime.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]

# From the coarsest to the finest, in nanoseconds; then the abbreviations that CF files use.
UNITS = {"days": 86_400_000_000_000, "hours": 3_600_000_000_000, "minutes": 60_000_000_000, "seconds": 1_000_000_000,
         "milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}  # fmt: skip
SHORT = {"d": "days", "h": "hours", "hr": "hours", "hrs": "hours", "min": "minutes", "mins": "minutes", "s": "seconds",
         "sec": "seconds", "secs": "seconds", "ms": "milliseconds", "msec": "milliseconds", "us": "microseconds",
         "ns": "nanoseconds"}  # fmt: skip
CALENDARS = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}
REAL = ("standard", "proleptic_gregorian")
KNOWN = ("standard", "proleptic_gregorian", "noleap", "all_leap", "360_day", "julian")
MOMENT = re.compile(
    r"\s*(?P<unit>[a-z]+)\s+since\s+(?P<year>[+-]?\d+)-(?P<month>\d+)-(?P<day>\d+)"
    r"(?:[Tt\s]+(?P<hour>\d+)(?::(?P<minute>\d+)(?::(?P<second>\d+)(?:\.(?P<fraction>\d*))?)?)?)?"
    r"\s*(?:Z|UTC|GMT|(?P<zone>[+-]\d{1,2}(?::?\d{2})?))?\s*",
    re.IGNORECASE,
)
FIRST_GREGORIAN = 141427  # days from 1582-10-15 to 1970-01-01
DAY = UNITS["days"]
MOST = 2**62 * 1000  # nanoseconds that are as microseconds in the range of int64


class NoCommonTime(ValueError):
    """Times that cannot be joined; the message says why."""


@dataclass(frozen=True)
class Clock:
    """The meaning of the numbers of a time coordinate: a unit, a reference time and a calendar."""

    unit: str
    since: str  # the reference time, as the file writes it
    calendar: str
    days: int  # from a fixed day of the calendar to the reference time
    nanoseconds: int  # from the start of that day to the reference time

    @classmethod
    def of(cls, units: str, calendar: str) -> Clock:
        """Parse the CF attributes `units` and `calendar`.

        Raises
        ------
        NoCommonTime
            They are not known.
        """
        moment = MOMENT.fullmatch(units)
        calendar = CALENDARS.get(calendar.lower(), calendar.lower())
        if moment is None or calendar not in KNOWN:
            raise NoCommonTime(f"units {units!r} of the calendar {calendar!r} are not understood")
        name = moment["unit"].lower()
        unit = SHORT.get(name, name if name.endswith("s") else name + "s")
        if unit not in UNITS:
            raise NoCommonTime(f"a {moment['unit']} has no fixed length")
        fraction = (moment["fraction"] or "").ljust(9, "0")[:9]
        clock = [int(moment[name] or 0) for name in ("hour", "minute", "second")]
        seconds = clock[0] * 3600 + clock[1] * 60 + clock[2] - _zone_seconds(moment["zone"])
        date = (int(moment["year"]), int(moment["month"]), int(moment["day"]))
        if not (1 <= date[1] <= 12 and 1 <= date[2] <= (30 if calendar == "360_day" else 31)):
            raise NoCommonTime(f"units {units!r} have no such date in the calendar {calendar!r}")
        days = day_number(*date, calendar)
        since = units[re.search(r"since\s+", units, re.IGNORECASE).end() :].strip()  # type: ignore[union-attr]
        return cls(unit, since, calendar, days, seconds * UNITS["seconds"] + int(fraction))

    def after(self, other: Clock) -> int:
        """Nanoseconds from the reference time of another clock to that of this one."""
        return (self.days - other.days) * DAY + self.nanoseconds - other.nanoseconds


def _zone_seconds(zone: str | None) -> int:
    if not zone:
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def day_number(year: int, month: int, day: int, calendar: str) -> int:
    """Days since 1970-01-01 for real calendars, since an arbitrary day for model calendars."""
    if calendar == "360_day":
        return year * 360 + (month - 1) * 30 + day - 1
    if calendar in ("noleap", "all_leap"):
        february = 28 + (calendar == "all_leap")
        lengths = (31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
        return year * sum(lengths) + sum(lengths[: month - 1]) + day - 1
    # Count years from March, so that the leap day is the last day of a year: the algorithm of Fliegel and Van Flandern.
    a = (14 - month) // 12
    y, m = year + 4800 - a, month + 12 * a - 3
    julian = day + (153 * m + 2) // 5 + 365 * y + y // 4 - 32083
    gregorian = julian + 38 - y // 100 + y // 400
    is_julian = calendar == "julian" or (calendar == "standard" and (year, month, day) < (1582, 10, 15))
    return (julian if is_julian else gregorian) - 2440588


def joined(clocks: Sequence[Clock], arrays: Sequence[Sequence[Numbers]]) -> tuple[str, list[list[Numbers]]]:
    """Convert the times of several files to the reference time and calendar of the first file.

    Parameters
    ----------
    clocks : Sequence[Clock]
        The meaning of the numbers of each file.
    arrays : Sequence[Sequence[Numbers]]
        For each array, its numbers file by file.

    Returns
    -------
    tuple[str, list[list[Numbers]]]
        The common CF `units`, and the converted numbers as int64, in the order of `arrays`. The unit is the finest of
        the files, or a finer one that makes every number an integer.

    Raises
    ------
    NoCommonTime
        Calendars differ, numbers are missing or not finite, or times are too far from the reference time.
    """
    first = clocks[0]
    if any(not np.isfinite(array).all() for own in arrays for array in own):
        raise NoCommonTime("some times are missing or not finite")
    pairs = [(clock, array) for own in arrays for clock, array in zip(clocks, own, strict=True)]
    is_short = all(_fits(clock, first, array) for clock, array in pairs)
    tick = 1 if is_short and first.calendar in REAL else 1000
    ticks = [[_ticks(clock, first, array, tick) for clock, array in zip(clocks, own, strict=True)] for own in arrays]
    _check_calendars(clocks, ticks[0], first, tick)
    finest = min(UNITS[clock.unit] for clock in clocks)
    for unit, nanoseconds in UNITS.items():
        if nanoseconds > finest or nanoseconds < tick:
            continue
        length = nanoseconds // tick
        if all(not (numbers % length).any() for own in ticks for numbers in own):
            return f"{unit} since {first.since}", [[numbers // length for numbers in own] for own in ticks]
    raise NoCommonTime("some times are not a whole number of microseconds")


def ticks_since(first: Clock, clock: Clock, numbers: Numbers) -> tuple[Numbers, int]:
    """Times as whole nanoseconds since another clock's reference time, or microseconds; and the length of these ticks.

    Raises
    ------
    NoCommonTime
        Times are too far from the reference time.
    """
    tick = 1 if first.calendar in REAL and _fits(clock, first, numbers) else 1000
    furthest = max(abs(float(numbers.min())), abs(float(numbers.max()))) * UNITS[clock.unit] if numbers.size else 0
    if tick > 1 and furthest > MOST:
        raise NoCommonTime(f"times in {clock.unit} are too far from {clock.since}")
    return np.asarray(_ticks(clock, first, numbers, tick)), tick


def _fits(clock: Clock, first: Clock, array: Numbers) -> bool:
    """Whether the times fit in int64 as nanoseconds, since the first reference time and since 1970."""
    if not array.size:
        return True
    most = max(abs(int(array.min())), abs(int(array.max()))) * UNITS[clock.unit]
    return most + abs(clock.after(first)) + abs(first.days) * DAY < 2**62


def _ticks(clock: Clock, first: Clock, array: Numbers, tick: int) -> Numbers:
    shift, unit = clock.after(first), UNITS[clock.unit]
    if shift % tick or (unit < tick and array.size):
        raise NoCommonTime("times in nanoseconds are too far from the reference time")
    if array.dtype.kind == "f":
        ticks = array.astype("f8") * np.int64(unit // tick)
        # Below a nanosecond xarray truncates; cftime, which xarray uses for other calendars, rounds.
        whole = ticks if tick == 1 else np.round(ticks)
        return whole.astype(np.int64) + np.int64(shift // tick)
    return array.astype(np.int64) * np.int64(unit // tick) + np.int64(shift // tick)


def _check_calendars(clocks: Sequence[Clock], ticks: Sequence[Numbers], first: Clock, tick: int) -> None:
    """Refuse times of another calendar than the first, unless both calendars have the same dates."""
    start = -FIRST_GREGORIAN - first.days
    for clock, numbers in zip(clocks, ticks, strict=True):
        if clock.calendar == first.calendar:
            continue
        is_same = clock.calendar in REAL and first.calendar in REAL
        if not is_same or (numbers.size and int(numbers.min()) * tick + first.nanoseconds < start * DAY):
            raise NoCommonTime(f"the calendars {first.calendar!r} and {clock.calendar!r} have different dates")
