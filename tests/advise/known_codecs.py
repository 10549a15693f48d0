"""Codecs whose costs are given: to measure them takes longest, and depends on the machine."""

from __future__ import annotations

from typing import Any

from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.costs import CodecRate
from hyperslab.storage.chain import PLAIN

KNOWN = MeasuredCodec(CodecRate(1e-9, 1e-8), 2.0)


def known_codecs(array: Any, encodings: dict[str, Any]) -> dict[Any, MeasuredCodec]:
    """The costs of all codecs of an array and of what it may become; all halve the bytes."""
    chains = {array.encoding, *(one for listed in encodings.values() for one in listed)} - {PLAIN}
    return {(library, one): KNOWN for one in chains for library in ("hdf5", "zarr", "hyperslab")}
