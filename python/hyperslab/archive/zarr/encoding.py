"""Which arrays of Zarr we encode ourselves: the one rule, from their metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hyperslab._core import encode_chunks
from hyperslab.errors import HyperslabError
from hyperslab.storage.chain import Codec, Step

# What numcodecs may say beside what we say, without changing what is stored.
IDLE: Mapping[str, Any] = {"checksum": False}


def steps_of(document: bytes, width: int) -> list[Step] | None:
    """The steps of our encoder for an array with this metadata; None if zarr-python has to encode it.

    A codec is ours if our own description of it is the one in the metadata, so a setting that we do not know is none of
    ours. Elements that are stored in another order than C are not ours either.

    Parameters
    ----------
    document : bytes
        The text of a `zarr.json` or `.zarray`.
    width : int
        The bytes of an element.
    """
    described = json.loads(document)
    try:
        steps = (
            _of_version_2(described, width) if described["zarr_format"] == 2 else _of_list(described["codecs"], width)
        )
        if steps is not None:  # a step that our encoder does not have is an error here
            encode_chunks(np.zeros(1, np.uint8), ([1], [1]), b"\0", steps, None, 1)
    except (HyperslabError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return steps


def document_of(metadata: Any) -> bytes | None:
    """The text of the `zarr.json` or `.zarray` of zarr-python's metadata of an array; None if it refuses to store them,
    as it does with chunk grids that its configuration does not allow.
    """
    from zarr.core.buffer import default_buffer_prototype

    try:
        return bytes(next(iter(metadata.to_buffer_dict(default_buffer_prototype()).values())).to_bytes())
    except ValueError:
        return None


def _of_version_2(described: Mapping[str, Any], width: int) -> list[Step] | None:
    if described["order"] != "C" and len(described["shape"]) > 1:
        return None
    last = described["compressor"]
    steps: list[Step] = []
    for given in [*(described["filters"] or []), *([] if last is None else [last])]:
        settings = {key: value for key, value in given.items() if key != "id"}
        ours, step = Codec.of_zarr(given["id"], settings).zarr2(width)
        if step is None or {**IDLE, **ours} != {**IDLE, **given}:
            return None
        steps.append(step)
    return steps


def _of_list(codecs: Sequence[Any], width: int) -> list[Step] | None:
    """The steps of a list of codecs in Zarr 3, or of the one within the shards that it describes."""
    named: list[dict[str, Any]] = [{"name": one} if isinstance(one, str) else one for one in codecs]
    first, *others = named
    if first["name"] == "sharding_indexed" and not others:
        return _of_list(first["configuration"]["codecs"], width)
    if first["name"] != "bytes":
        return None
    steps: list[Step] = []
    for given in others:
        settings: dict[str, Any] = given.get("configuration", {})
        ours, step = Codec.of_zarr(given["name"], settings).zarr3(settings.get("typesize", width))
        if step is None or (ours["name"], ours.get("configuration", {})) != (given["name"], settings):
            return None
        steps.append(step)
    return steps
