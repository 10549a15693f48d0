"""What the numbers of an array mean by CF's attributes: masks, factors and offsets undone, and times as dates."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.archive.conventions import cf
from hyperslab.archive.conventions.calendars import dates
from hyperslab.archive.conventions.times import DAY, REAL, Clock, NoCommonTime, ticks_since
from hyperslab.errors import Unsupported

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array

Numbers = np.ndarray[Any, Any]
EPOCH = "seconds since 1970-01-01"
GREGORIAN_DAY = -141427  # 1582-10-15, from which on the standard calendar is the one of datetime64
# Units of datetime64, the coarsest first, in nanoseconds.
PRECISIONS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def unpacked(array: Array, values: Numbers) -> Numbers:
    """The values as `xarray.decode_cf` decodes them, from the elements that were read.

    Times become datetime64, in the coarsest unit that holds them. Those of calendars that datetime64 does not have
    become text in ISO 8601.

    Raises
    ------
    Unsupported
        An attribute cannot be applied; the message names the array and the attribute.
    """
    attrs = cf.attributes(array)
    try:
        numbers = _numbers(values, attrs) if cf.is_packed(attrs) else values
        numbers = numbers.astype(numbers.dtype.newbyteorder("="), copy=False)
        clock = _clock(attrs)
        return numbers if clock is None or numbers.dtype.kind not in "iuf" else _times(numbers, clock)
    except (Unsupported, NoCommonTime) as error:
        raise Unsupported(f"array {array.name} of {array.filename} cannot be decoded by CF's rules: {error}") from error


def _numbers(values: Numbers, attrs: dict[str, Any]) -> Numbers:
    """Masked numbers become NaN; then the factor, then the offset, in the dtype that xarray chooses."""
    if values.dtype.kind not in "iuf":
        return values
    made, conversion = cf.decoding(values.dtype, attrs)
    stored = values if conversion.stored_as is None else values.view(conversion.stored_as)
    unscaled = stored.astype(made)
    if conversion.packing is None:
        return unscaled
    masked, scale, offset, _ = conversion.packing
    is_masked = np.zeros(unscaled.shape, bool)
    for value in masked:
        is_masked |= unscaled == np.float64(value)
    unscaled[is_masked] = np.nan
    if scale is not None:
        unscaled *= np.asarray(attrs["scale_factor"]).reshape(())[()]
    if offset is not None:
        unscaled += np.asarray(attrs["add_offset"]).reshape(())[()]
    return unscaled


def _clock(attrs: dict[str, Any]) -> Clock | None:
    """The meaning of times; None for other numbers. Units that only look like those of times are left alone."""
    units = attrs.get("units")
    if not isinstance(units, str) or " since " not in units:
        return None
    with suppress(NoCommonTime):
        return Clock.of(units, str(attrs.get("calendar", "standard")))
    return None


def _times(numbers: Numbers, clock: Clock) -> Numbers:
    epoch = Clock.of(EPOCH, clock.calendar)
    known = np.isfinite(numbers)
    filled = np.where(known, numbers, 0).astype(numbers.dtype)
    if numbers.dtype.kind == "f" and (filled == np.rint(filled)).all() and (abs(filled) < 2**53).all():
        filled = filled.astype(np.int64)  # masking made floats of them: as integers they lose nothing
    ticks, tick = ticks_since(epoch, clock, filled)
    days = ticks // (DAY // tick)
    if clock.calendar in REAL and (clock.calendar != "standard" or not ticks.size or days.min() >= GREGORIAN_DAY):
        return _moments(ticks, known, tick)
    text = dates(days + epoch.days, (ticks - days * (DAY // tick)) * tick, clock.calendar)
    return np.where(known, text, "NaT")


def _moments(ticks: Numbers, known: Numbers, tick: int) -> Numbers:
    for name, nanoseconds in PRECISIONS.items():
        length = max(nanoseconds // tick, 1)
        if nanoseconds <= tick or not (ticks % length).any():
            return np.where(known, (ticks // length).astype(f"M8[{name}]"), np.array("NaT", f"M8[{name}]"))
    raise AssertionError("a tick is a microsecond or a nanosecond")  # pragma: no cover
