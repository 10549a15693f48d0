"""The steps of our encoder for an array that zarr-python has created."""

from __future__ import annotations

from typing import Any

from hyperslab.storage.chain import Codec, Step

Described = tuple[tuple[int, ...], tuple[int, ...] | None, list[Step]]


def zarr_steps(array: Any) -> Described | None:
    """Chunk shape, shard shape (None without shards) and steps of an array of zarr-python; None if we lack one of them.

    Parameters
    ----------
    array : Any
        The array of zarr-python.
    """
    document = array.metadata.to_dict()
    if document["zarr_format"] == 2:
        return _of_version_2(array, document)
    return _of_version_3(array, document)


def _of_version_2(array: Any, document: dict[str, Any]) -> Described | None:
    if document.get("filters") or array.dtype.hasobject or document.get("order", "C") != "C":
        return None
    if document.get("dimension_separator", ".") != ".":
        return None
    last = document.get("compressor")
    if last is None:
        return tuple(array.chunks), None, []
    config = last if isinstance(last, dict) else last.get_config()
    name: str = config["id"]
    step = _step(name, config, array.dtype.itemsize)
    return None if step is None else (tuple(array.chunks), None, [step])


def _of_version_3(array: Any, document: dict[str, Any]) -> Described | None:
    keys = document["chunk_key_encoding"]
    if keys["name"] != "default" or keys.get("configuration", {}).get("separator", "/") != "/":
        return None
    codecs = list(document["codecs"])
    chunks, shards = tuple(document["chunk_grid"]["configuration"]["chunk_shape"]), None
    if codecs and codecs[0]["name"] == "sharding_indexed":
        settings = codecs[0]["configuration"]
        if len(codecs) > 1 or settings.get("index_location", "end") != "end":
            return None
        if [one["name"] for one in settings["index_codecs"]] != ["bytes", "crc32c"]:
            return None
        chunks, shards, codecs = tuple(settings["chunk_shape"]), chunks, list(settings["codecs"])
    if not codecs or codecs[0]["name"] != "bytes":
        return None
    endian = codecs[0].get("configuration", {}).get("endian", "little")
    if array.dtype.itemsize > 1 and (endian == "little") != (array.dtype.newbyteorder("=").str[0] in "<|"):
        return None
    steps = [_step(one["name"], one.get("configuration", {}), array.dtype.itemsize) for one in codecs[1:]]
    return None if None in steps else (chunks, shards, [step for step in steps if step is not None])


def _step(name: str, settings: dict[str, Any], width: int) -> Step | None:
    """The step of a codec of numcodecs or of Zarr 3's specification."""
    return Codec.of_zarr(name, settings).encoder_step(settings.get("typesize") or width)
