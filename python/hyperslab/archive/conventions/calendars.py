"""Dates of CF's calendars in ISO 8601, from days and nanoseconds; `times.day_number` is the other direction."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]
JULIAN_DAY = 2440588  # of 1970-01-01
FIRST_GREGORIAN = -141427 + JULIAN_DAY  # the Julian day of 1582-10-15
SECOND = 10**9


def dates(days: Numbers, nanoseconds: Numbers, calendar: str) -> Numbers:
    """Text such as `2001-02-30T06:00:00`, with as many digits of the second as any of them needs."""
    year, month, day = _date(days, calendar)
    seconds, rest = np.divmod(nanoseconds, SECOND)
    digits = next((n for n in (0, 3, 6) if not (rest % 10 ** (9 - n)).any()), 9)
    columns = [np.ravel(one).tolist() for one in (year, month, day, seconds, rest // 10 ** (9 - digits))]
    text = [
        f"{_year(y)}-{m:02}-{d:02}T{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}{f'.{r:0{digits}}' if digits else ''}"
        for y, m, d, s, r in zip(*columns, strict=True)
    ]
    return np.array(text, dtype=str).reshape(np.shape(days))


def _year(year: int) -> str:
    return f"{year:04}" if year >= 0 else f"-{-year:04}"


def _date(days: Numbers, calendar: str) -> tuple[Numbers, Numbers, Numbers]:
    if calendar == "360_day":
        return days // 360, days % 360 // 30 + 1, days % 30 + 1
    if calendar in ("noleap", "all_leap"):
        lengths = (31, 28 + (calendar == "all_leap"), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
        starts = np.cumsum((0, *lengths))
        year, of_year = np.divmod(days, sum(lengths))
        month = np.searchsorted(starts, of_year, side="right")
        return year, month, of_year - starts[month - 1] + 1
    return _of_julian_day(days + JULIAN_DAY, calendar)


def _of_julian_day(number: Numbers, calendar: str) -> tuple[Numbers, Numbers, Numbers]:
    """Richards' algorithm: https://aa.usno.navy.mil/publications/exp_supp, section 15.11.3."""
    later = (4 * number + 274277) // 146097 * 3 // 4 - 38
    is_gregorian = np.zeros(np.shape(number), bool)
    if calendar != "julian":
        is_gregorian = (number >= FIRST_GREGORIAN) | (calendar == "proleptic_gregorian")
    shifted = 4 * (number + 1401 + np.where(is_gregorian, later, 0)) + 3
    of_year = 5 * (shifted % 1461 // 4) + 2
    day = of_year % 153 // 5 + 1
    month = (of_year // 153 + 2) % 12 + 1
    return shifted // 1461 - 4716 + (14 - month) // 12, month, day
