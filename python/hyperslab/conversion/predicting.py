"""How long a conversion will take, from a small part of it that is read, encoded and synced first."""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import replace

import numpy as np

from hyperslab.conversion.encoding import Box, Bytes
from hyperslab.conversion.filling import Filler, Filling
from hyperslab.conversion.journal import SCRATCH_PREFIX, ConversionJournal
from hyperslab.timers import Timers

SAMPLE_NBYTES = 8 << 20
# Below this a prediction takes as long as the conversion.
WORTH_PREDICTING_NBYTES = 64 << 20
# Arrays with less than this share of all bytes are taken to be like the others.
LEAST_SHARE = 0.05


def predicted_seconds(
    fillings: list[Filling], filler: Filler, journal: ConversionJournal, copied_nbytes: int, *, is_verified: bool
) -> float:
    """The seconds that filling all arrays will probably take, measured on a part of each large one.

    Parameters
    ----------
    fillings : list[Filling]
        The arrays to fill.
    filler : Filler
        What will fill them, whose plans tell how often chunks of the source are decoded.
    journal : ConversionJournal
        Where the target is, and what is finished.
    copied_nbytes : int
        Bytes that are copied as they are stored.
    is_verified : bool
        Whether everything is read again.
    """
    total = sum(filling.nbytes for filling in fillings)
    large = [one for one in fillings if one.nbytes and one.nbytes >= LEAST_SHARE * total]
    seconds = sampled = 0.0
    for filling in large:
        seconds += _seconds_of(filling, filler, journal, is_verified=is_verified)
        sampled += filling.nbytes
    if sampled:
        seconds *= total / sampled
    if copied_nbytes:
        some = np.zeros(min(copied_nbytes, SAMPLE_NBYTES), np.uint8)
        seconds += _write_seconds(some, journal) / len(some) * copied_nbytes
    return seconds


def _seconds_of(filling: Filling, filler: Filler, journal: ConversionJournal, *, is_verified: bool) -> float:
    plan = filler.plan(filling)
    box = _sample_box(filling)
    data = np.empty(filling.nbytes_of(box), np.uint8)
    timers = Timers()
    with timers("read"):
        filling.read(box, data)
    read = timers.seconds["read"]
    encoder = filling.target.encoder
    chunk = min(len(data) // filling.width, math.prod(encoder.chunk_shape))
    flat = (slice(0, len(data) // filling.width // chunk * chunk),)
    used = data[: flat[0].stop * filling.width]
    encoded: list[bytes] = []
    with timers("encode"):
        replace(encoder, chunk_shape=(chunk,)).encode(flat, used, lambda _, given, __: encoded.append(given or b""))
    stored = np.frombuffer(b"".join(encoded), np.uint8)
    write = _write_seconds(stored, journal) if len(stored) else 0.0
    decodes = plan.target.decodes if plan.source is None else 1.0
    between = 0.0 if plan.source is None else 2 * _write_seconds(used, journal)
    parts = read * decodes + (read if is_verified else 0.0) + between
    done = _finished_share(filling, filler, journal)
    per_byte = parts / max(len(data), 1) + (timers.seconds["encode"] + write) / max(len(used), 1)
    return per_byte * filling.nbytes * (1 - done)


def _finished_share(filling: Filling, filler: Filler, journal: ConversionJournal) -> float:
    """How much of an array an interrupted conversion has written."""
    if not journal.is_resumed:
        return 0.0
    count = filler.plan(filling).target.count
    return sum(1 for path, _ in journal.finished if path == filling.path) / max(count, 1)


def _sample_box(filling: Filling) -> Box:
    """Whole chunks of the source from the middle of an array, or rows if it has none."""
    lengths = [
        max(1, min(chunk, length))
        for chunk, length in zip(filling.source_chunks or (1,) * len(filling.shape), filling.shape, strict=True)
    ]
    for axis in reversed(range(len(lengths))):
        room = SAMPLE_NBYTES // max(1, math.prod(lengths) * filling.width)
        lengths[axis] = min(filling.shape[axis], lengths[axis] * max(1, room))
    starts = []
    for axis, (length, all_) in enumerate(zip(lengths, filling.shape, strict=True)):
        chunk = (filling.source_chunks or (1,) * len(filling.shape))[axis]
        starts.append(min((all_ // 2) // chunk * chunk, all_ - length))
    return tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))


def _write_seconds(data: Bytes, journal: ConversionJournal) -> float:
    """The seconds to write these bytes to the target's disk."""
    timers = Timers()
    with tempfile.TemporaryFile(dir=journal.folder, prefix=SCRATCH_PREFIX) as file, timers("write"):
        file.write(data.data)
        os.fsync(file.fileno())
    return timers.seconds["write"]
