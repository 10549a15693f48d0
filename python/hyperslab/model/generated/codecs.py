"""What codecs cost on the arrays of drawn workloads: measured on samples, as for an array in your own file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import numpy as np

from hyperslab.errors import RunError
from hyperslab.lab.fields import Field
from hyperslab.model.cells import ModelCell
from hyperslab.model.codec_sample import rates_of, sample_of
from hyperslab.model.costs import CodecRate
from hyperslab.model.measuring import CellTimings, key_of
from hyperslab.model.paper_experiments import Candidate
from hyperslab.progress import Progress
from hyperslab.replacing import replace_with

DrawnRates: TypeAlias = Mapping[str, CodecRate]


def rate_key(cell: ModelCell) -> str:
    """The cells with the same key share a rate."""
    chunk = "x".join(map(str, cell.layout.chunk_shape))
    return f"{cell.library.name}, {cell.layout.codec}, {chunk}, {cell.workload.array!r}"


def rates_of_drawn(
    candidates: Sequence[Candidate],
    known: Sequence[CellTimings],
    saved: Path,
    progress: Progress = lambda *_: None,
) -> DrawnRates:
    """Measure the codecs of all candidates that were measured, each on a sample of its own array.

    The file `saved` keeps the rates. What it has is not measured again.

    Raises
    ------
    RunError
        The file cannot be read or written.
    """
    try:
        rates_by_key = (
            {key: CodecRate(**rate) for key, rate in json.loads(saved.read_text()).items()} if saved.exists() else {}
        )
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise RunError(f"{saved} has no rates of codecs ({error}): remove it") from error
    measured = {key_of(one.cell) for one in known}
    cells = [one.cell for one in candidates if one.cell.layout.codec is not None and key_of(one.cell) in measured]
    asked = {rate_key(cell): cell for cell in cells if rate_key(cell) not in rates_by_key}
    made: tuple[str, np.ndarray] = ("", np.empty(0))
    for number, (key, cell) in enumerate(asked.items()):
        progress(f"codec {cell.layout.codec} on a sample", number, len(asked))
        array = cell.workload.array
        field = Field(cell.field, tuple(array.shape), np.dtype(array.dtype))
        if made[0] != repr(field):  # several layouts of one array follow each other
            made = repr(field), field.array(field.buffer(), 0)
        chunk, sample = sample_of(made[1], cell.layout.chunk_shape)
        rates = rates_of(sample, chunk, [str(cell.layout.codec)], libraries=[cell.library.name])
        rates_by_key.update((key, rate) for rate in rates.values())
    try:
        replace_with(saved, json.dumps({key: asdict(rate) for key, rate in rates_by_key.items()}, indent=1).encode())
    except OSError as error:
        raise RunError(f"{saved} cannot be written ({error.strerror})") from error
    return rates_by_key
