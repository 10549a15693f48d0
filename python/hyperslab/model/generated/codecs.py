"""What codecs cost on the arrays of drawn workloads: measured on samples, as for an array in your own file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hyperslab.lab.fields import Field
from hyperslab.lab.rounds import Progress
from hyperslab.model.cells import ModelCell
from hyperslab.model.codec_sample import rates_of, sample_of
from hyperslab.model.costs import CodecRate
from hyperslab.model.measuring import CellTimings, key_of
from hyperslab.model.paper_experiments import Candidate

Key: TypeAlias = tuple[str, str, tuple[int, ...], str | None]
DrawnRates: TypeAlias = dict[Key, CodecRate]


def rate_key(cell: ModelCell) -> Key:
    """The cells with the same key share a rate."""
    return cell.library.name, repr(cell.workload.array), cell.layout.chunk_shape, cell.layout.codec


def rates_of_drawn(
    candidates: Sequence[Candidate], known: Sequence[CellTimings], progress: Progress = lambda *_: None
) -> DrawnRates:
    """Measure the codecs of all candidates that were measured, each on a sample of its own array."""
    measured = {key_of(found.cell) for found in known}
    cells = [one.cell for one in candidates if one.cell.layout.codec is not None and key_of(one.cell) in measured]
    asked = {rate_key(cell): cell for cell in cells}
    found: DrawnRates = {}
    made: tuple[str, np.ndarray] = ("", np.empty(0))
    for number, (key, cell) in enumerate(asked.items()):
        progress(f"codec {cell.layout.codec} on a sample", number, len(asked))
        array = cell.workload.array
        field = Field(cell.field, tuple(array.shape), np.dtype(array.dtype))
        if made[0] != repr(field):  # several layouts of one array follow each other
            made = repr(field), field.array(field.buffer(), 0)
        chunk, sample = sample_of(made[1], cell.layout)
        rates = rates_of(sample, chunk, [str(cell.layout.codec)], libraries=[cell.library.name])
        found.update((key, rate) for rate in rates.values())
    return found
