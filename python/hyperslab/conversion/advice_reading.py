"""Reads an advice: what `hyperslab advise -o` wrote, or a JSON file of yours. The keys are strict.

`hyperslab.advise.advice` describes the file that `advise` writes. In your own file (without `schema`), a key that you
leave out, or that is null, keeps what the source has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from hyperslab.errors import UsageError
from hyperslab.meant import meant_or_choose
from hyperslab.regular_files import open_regular

ADVICE = "hyperslab-advice"  # the schema of what `hyperslab advise` saves
FORMATS = ("hdf5", "netcdf4", "zarr2", "zarr3")
FORM = '{"arrays": {"PATH": {"chunks": [...], "codec": "..."}}}'
MOST_NBYTES = 64 << 20
KEYS = ("schema", "version", "source", "arrays")


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


# What each key of an array must be, with words for it; null is always allowed.
ARRAY_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "format": (lambda value: value in FORMATS, f"one of {', '.join(FORMATS)}"),
    "chunks": (lambda _: True, ""),  # the wish says what is wrong with lengths
    "shards": (lambda _: True, ""),
    "codec": (lambda value: isinstance(value, str) or _is_list(value), "a name such as shuffle+deflate:4"),
    "level": (_is_number, "a number from 0"),
    "shuffle": (lambda value: isinstance(value, bool), "true or false"),
    "order": (lambda value: _is_list(value) and all(map(_is_number, value)), "a list of axes from 0"),
    "append_axis": (_is_number, "the number of an axis from 0"),
    "keep": (lambda value: isinstance(value, bool), "true or false"),
    "reason": (lambda value: isinstance(value, str), "text"),
}


def checked_advice(like: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """The content of an advice, with known keys only.

    Parameters
    ----------
    like : str | Path | Mapping[str, Any]
        The file, or its content.

    Raises
    ------
    UsageError
        The file cannot be read, it is no advice, or a key is unknown; the message names the file and the key.
    """
    name = "the advice" if isinstance(like, Mapping) else str(like)
    content = like if isinstance(like, Mapping) else _read(Path(like))
    if not isinstance(content, Mapping):
        raise UsageError(f"{name} is not advice: it has the form {FORM}")
    _check_keys(name, content, KEYS)
    arrays = content.get("arrays")
    if not isinstance(arrays, Mapping) or not all(isinstance(one, Mapping) for one in arrays.values()):
        raise UsageError(f"{name} is not advice: it has the form {FORM}")
    schema, version = content.get("schema", ADVICE), content.get("version", 1)
    if schema != ADVICE or version != 1:
        raise UsageError(f"{name} is not advice: schema {schema!r}, version {version!r}; we read {ADVICE!r}, version 1")
    for path, one in arrays.items():
        _check_keys(f"{name}: array {path!r}", one, ARRAY_KEYS)
        for key, value in one.items():
            is_right, words = ARRAY_KEYS[key]
            if value is not None and not is_right(value):
                raise UsageError(f"{name}: array {path!r}: {key} is {value!r}, but it must be {words}")
    return content


def wanted_by(like: str | Path | Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """What an advice wants for each array, by path, in the words of a wish: `chunks`, `shards`, `codec`, and so on.

    Raises
    ------
    UsageError
        It is no advice, or no conversion can do what it wants.
    """
    if like is None:
        return {}
    content = checked_advice(like)
    is_complete = "schema" in content
    found: dict[str, dict[str, Any]] = {}
    for path, one in content["arrays"].items():
        if not one.get("keep"):
            if path.strip("/") in found:
                raise UsageError(f"the advice has two entries for the array {path!r}")
            found[path.strip("/")] = _wanted(path, one, is_complete=is_complete)
    return found


def _wanted(path: str, one: Mapping[str, Any], *, is_complete: bool) -> dict[str, Any]:
    order = one.get("order")
    if order is not None and list(order) != sorted(order):
        raise UsageError(f"{path}: the advice stores the axes in the order {order}; convert keeps their order")
    wanted = {key: one[key] for key in ("chunks", "shards", "append_axis", "format") if one.get(key) is not None}
    if is_complete and one.get("chunks") is None:
        wanted["chunks"] = "contiguous"
        return wanted
    codec = _codec_text(path, one, is_complete=is_complete)
    return wanted if codec is None else {**wanted, "codec": codec}


def _codec_text(path: str, one: Mapping[str, Any], *, is_complete: bool) -> str | None:
    """The codec chain in one text; None if the advice does not name one."""
    codec, level = one.get("codec"), one.get("level")
    named = codec if isinstance(codec, str) or codec is None else "+".join(map(str, codec))
    if named is None and level is not None:
        raise UsageError(f"{path}: the advice has a level, but no codec")
    if named is None and not is_complete and not one.get("shuffle"):
        return None
    text = named or "none"
    if level is not None:
        text = f"{text}:{level}"
    return f"shuffle+{text}" if one.get("shuffle") and "shuffle" not in text else text


def _read(path: Path) -> Any:
    try:
        if not path.is_file():
            path.stat()  # says why, if there is nothing
            raise UsageError(f"{path} is not advice, but a folder or a device: name a file of `hyperslab advise -o`")
        with open_regular(path) as file:
            content = file.read(MOST_NBYTES + 1)
    except OSError as error:
        said = f"{path}: cannot be read ({error.strerror}); `hyperslab advise FILE -o {path}` writes it"
        raise UsageError(said) from error
    if len(content) > MOST_NBYTES:
        raise UsageError(f"{path} is not advice: it has more than {MOST_NBYTES >> 20} MiB")
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        said = f"{path} is not advice: not JSON ({error}); `hyperslab advise FILE -o {path}` writes such a file"
        raise UsageError(said) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping. JSON itself would keep the last of two values for a key without a word."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice")
        found[key] = value
    return found


def _check_keys(where: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{where}: unknown key {key!r}{meant_or_choose(str(key), known)}")
