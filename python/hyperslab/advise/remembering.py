"""What codecs cost on the data of a file is measured once, and remembered: the same question gets the same answer.

A measurement scatters, so two commands that measure by themselves would predict different seconds. What is remembered
counts as long as the file and the store profile are the same; `hyperslab calibrate` makes a new profile.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyperslab.advise.stored import StoredArray
from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.costs import CodecRate
from hyperslab.model.store_profile import StoreProfile, default_path
from hyperslab.replacing import replace_with
from hyperslab.storage.chain import CodecChain

MOST_REMEMBERED = 2000
MOST_NBYTES = 4 << 20
HOW = "by callers, gzip too"  # what was measured in another way is measured again
Measured = dict[tuple[str, CodecChain], MeasuredCodec]
Asked = dict[str, list[CodecChain]]


def remembered(
    array: StoredArray, profile: StoreProfile, asked: Asked, measure: Callable[[Asked], Measured]
) -> Measured:
    """What codecs cost on an array, by library: what is known, and the rest measured. A lacking codec is left out."""
    path = default_path().with_name("measured-codecs.json")  # beside what else was measured on this machine
    known = _read(path)
    if array.sample is None:
        return _of_gone(array, profile, asked, known)
    begin = _begin(array, profile)
    keys = {(name, one): f"{begin}|{name}|{one}" for name, listed in asked.items() for one in listed}
    missing = {name: [one for one in listed if keys[name, one] not in known] for name, listed in asked.items()}
    made = measure({name: listed for name, listed in missing.items() if listed}) if any(missing.values()) else {}
    new = {keys[pair]: _numbers(made.get(pair)) for pair in keys if keys[pair] not in known}
    if new and begin:
        kept = {**known, **new}
        _write(path, dict(list(kept.items())[-MOST_REMEMBERED:]))
    codecs = {pair: _measured(known[key]) for pair, key in keys.items() if key in known} | made
    return {pair: one for pair, one in codecs.items() if one is not None}


def _of_gone(array: StoredArray, profile: StoreProfile, asked: Asked, known: dict[str, Any]) -> Measured:
    """What was measured on a file while it was there: its traces still ask what it takes, but do not say the level."""
    where = f"{os.path.realpath(array.file)}|"
    codecs: Measured = {}
    for name, listed in asked.items():
        for one in listed:
            end = _without_levels("|".join(("", *_of_array(array, profile), name, str(one))))
            last = [key for key in known if key.startswith(where) and _without_levels(key).endswith(end)][-1:]
            measured = _measured(known[last[0]]) if last else None
            if measured is not None:
                codecs[name, one] = measured
    return codecs


def _without_levels(key: str) -> str:
    begin, bar, chain = key.rpartition("|")
    return begin + bar + re.sub(r":\d+", "", chain)


def _begin(array: StoredArray, profile: StoreProfile) -> str:
    """What a measurement depends on besides the codec; empty if the file cannot be told from another one."""
    try:
        seen = Path(array.file).stat()
    except (OSError, ValueError):
        return ""
    where = os.path.realpath(array.file)
    return "|".join((where, str(seen.st_mtime_ns), str(seen.st_size), *_of_array(array, profile)))


def _of_array(array: StoredArray, profile: StoreProfile) -> tuple[str, ...]:
    return str(array.stored_nbytes), array.name, profile.made_at, profile.hyperslab_version, HOW


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_NBYTES:
            return {}
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: one for key, one in content.items() if one is None or _are_numbers(one)}


def _are_numbers(one: Any) -> bool:
    if not isinstance(one, list) or len(one) != 5:
        return False
    is_number = [isinstance(each, float | int) and not isinstance(each, bool) and 0 <= each < 1e9 for each in one]
    return all(is_it or each is None for is_it, each in zip(is_number, one, strict=True)) and all(is_number[:3])


def _write(path: Path, known: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_with(path, json.dumps(known).encode())
    except OSError:
        pass  # then it is measured again


def _numbers(one: MeasuredCodec | None) -> list[float | None] | None:
    """Ratio, decode, encode, and both for a chunk alone; None for a codec that the library lacks."""
    if one is None:
        return None
    rate = one.rate
    return [one.ratio, rate.decode, rate.encode, rate.decode_alone, rate.encode_alone]


def _measured(numbers: Any) -> MeasuredCodec | None:
    return None if numbers is None else MeasuredCodec(CodecRate(*numbers[1:]), numbers[0])
