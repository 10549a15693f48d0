"""`AdviceFile`: the layout that each array of a file should get. `advise` writes it, `convert --like` reads it.

{
 "schema": "hyperslab-advice", "version": 1, "source": "ocean.nc",
 "arrays": {
  "/sst": {
   "format": "hdf5", "chunks": [120, 23, 45], "shards": null, "codec": "deflate", "level": 4, "shuffle": true,
   "order": null, "append_axis": null, "keep": false, "reason": "each series touches 1 chunk instead of 120"
  }
 }
}

With `schema`, an advice says all of each array: `chunks` that are null put it in one piece, and a `codec` that is null
is none. In your own file, without `schema`, a key that you leave out, or that is null, keeps what the source has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from hyperslab.errors import UsageError
from hyperslab.meant import meant_or_choose
from hyperslab.regular_files import open_regular
from hyperslab.replacing import replace_with

SCHEMA, VERSION = "hyperslab-advice", 1
FORMATS = ("hdf5", "netcdf4", "zarr2", "zarr3")
FORM = '{"arrays": {"PATH": {"chunks": [...], "codec": "..."}}}'
MOST_NBYTES = 64 << 20
KEYS = ("schema", "version", "source", "arrays")


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Integral) and int(value) >= 0


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


@dataclass(frozen=True)
class AdvisedArray:
    """The layout that one array should get.

    Attributes
    ----------
    format
        The format that the advice is for.
    chunks, shards
        Lengths for the axes in order; in your own file also by dimension, as text, or "contiguous".
    codec, level
        The codec as `hyperslab formats` names it, and its level; None: the library's default.
    shuffle
        Whether the bytes are shuffled before the codec.
    order
        Today's axes in the order in which they are stored; None: as today.
    append_axis
        The stored axis that must be able to grow.
    keep
        Whether the advice is to keep this array as it is, in the layout given here.
    reason
        Why, in words.

    Raises
    ------
    UsageError
        A value is of the wrong kind, or they contradict each other.
    """

    format: str | None = None
    chunks: Any = None
    shards: Any = None
    codec: str | Sequence[str] | None = None
    level: int | None = None
    shuffle: bool = False
    order: Sequence[int] | None = None
    append_axis: int | None = None
    keep: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        for key, (is_right, words) in ARRAY_KEYS.items():
            value = getattr(self, key)
            if value is not None and not is_right(value):
                raise UsageError(f"{key} is {value!r}, but it must be {words}")
        given = [one for one in (self.chunks, self.shards, self.order) if one is not None and _is_list(one)]
        if len(set(map(len, given))) > 1:
            raise UsageError("chunks, shards and order must have the same number of axes")
        if self.order is not None and sorted(self.order) != list(range(len(self.order))):
            raise UsageError("order must name every axis once, from 0")

    def check_complete(self) -> None:
        """Check what an advice needs that says all of its arrays.

        Raises
        ------
        UsageError
            A key is missing, or an array in one piece has what only chunks can have.
        """
        if self.format is None:
            raise UsageError("format: this key is missing")
        if self.shards is not None and self.format != "zarr3":
            raise UsageError(f"{self.format} has no shards")
        if self.chunks is None and (self.codec or self.shards or self.shuffle or self.append_axis is not None):
            raise UsageError("an array in one piece has no codec and no shards, and it cannot grow: give chunks")
        for key in ("chunks", "shards"):
            lengths = getattr(self, key)
            if lengths is not None and not (_is_list(lengths) and all(_is_number(one) and one for one in lengths)):
                raise UsageError(f"{key} is {lengths!r}, but it must be a list of lengths from 1")
        if self.shards and any(shard % chunk for shard, chunk in zip(self.shards, self.chunks, strict=True)):
            raise UsageError("each length of shards must be a multiple of that of chunks")

    def wanted(self, *, is_complete: bool) -> dict[str, Any]:
        """What it wants, in the words of a wish: `chunks`, `shards`, `codec`, and so on.

        Raises
        ------
        UsageError
            No conversion can do it.
        """
        if self.order is not None and list(self.order) != sorted(self.order):
            raise UsageError(f"the advice stores the axes in the order {list(self.order)}; convert keeps their order")
        keys = ("chunks", "shards", "append_axis", "format")
        wanted = {key: getattr(self, key) for key in keys if getattr(self, key) is not None}
        if is_complete and self.chunks is None:
            return {**wanted, "chunks": "contiguous"}
        codec = self._codec_text(is_complete=is_complete)
        return wanted if codec is None else {**wanted, "codec": codec}

    def _codec_text(self, *, is_complete: bool) -> str | None:
        """The codec chain in one text; None if the advice does not name one."""
        codec, level = self.codec, self.level
        named = codec if isinstance(codec, str) or codec is None else "+".join(map(str, codec))
        if named is None and level is not None:
            raise UsageError("the advice has a level, but no codec")
        if named is None and not is_complete and not self.shuffle:
            return None
        text = named or "none"
        if level is not None:
            text = f"{text}:{level}"
        return f"shuffle+{text}" if self.shuffle and "shuffle" not in text else text


@dataclass(frozen=True)
class AdviceFile:
    """The advice for the arrays of one file, by their paths.

    Attributes
    ----------
    source
        The file that was asked about.
    arrays
        The layouts by path.
    is_complete
        Whether it says all of each array, as what `advise` writes does.

    Raises
    ------
    UsageError
        The advice for an array is not complete.
    """

    source: str
    arrays: Mapping[str, AdvisedArray]
    is_complete: bool = True

    def __post_init__(self) -> None:
        for path, one in self.arrays.items() if self.is_complete else ():
            try:
                one.check_complete()
            except UsageError as error:
                raise UsageError(f"array {path!r}: {error}") from error

    @classmethod
    def read(cls, like: str | Path | Mapping[str, Any]) -> AdviceFile:
        """Read what `hyperslab advise -o` wrote, or a JSON file of yours. The keys are strict.

        Parameters
        ----------
        like : str | Path | Mapping[str, Any]
            The file, or its content.

        Raises
        ------
        UsageError
            The file cannot be read, or it is not advice; the message names the file and the key.
        """
        name = "the advice" if isinstance(like, Mapping) else str(like)
        content = like if isinstance(like, Mapping) else _content(Path(like))
        if not isinstance(content, Mapping):
            raise UsageError(f"{name} is not advice: it has the form {FORM}")
        _check_keys(name, content, KEYS)
        arrays = content.get("arrays")
        if not isinstance(arrays, Mapping) or not all(isinstance(one, Mapping) for one in arrays.values()):
            raise UsageError(f"{name} is not advice: it has the form {FORM}")
        schema, version = content.get("schema", SCHEMA), content.get("version", VERSION)
        if schema != SCHEMA or version != VERSION or isinstance(version, bool):
            said = f"schema {schema!r}, version {version!r}; we read {SCHEMA!r}, version {VERSION}"
            raise UsageError(f"{name} is not advice: {said}")
        is_complete, source = "schema" in content, content.get("source", "")
        if not isinstance(source, str):
            raise UsageError(f"{name} is not advice: source: {source!r} is not the name of a file")
        advised = {str(path): _array(f"{name}: array {path!r}", one) for path, one in arrays.items()}
        try:
            return cls(source, advised, is_complete)
        except UsageError as error:
            said = f"`hyperslab advise FILE -o {name}` writes such a file"
            raise UsageError(f"{name} is not advice: {error}; {said}") from error

    def wanted(self) -> dict[str, dict[str, Any]]:
        """What it wants for each array that it would change, by path without a slash in front.

        Raises
        ------
        UsageError
            An array has two entries, or no conversion can do what is wanted.
        """
        wanted: dict[str, dict[str, Any]] = {}
        for path, one in self.arrays.items():
            if one.keep:
                continue
            if path.strip("/") in wanted:
                raise UsageError(f"the advice has two entries for the array {path!r}")
            try:
                wanted[path.strip("/")] = one.wanted(is_complete=self.is_complete)
            except UsageError as error:
                raise UsageError(f"{path}: {error}") from error
        return wanted

    def to_json(self) -> str:
        """The text of the file."""
        head = {"schema": SCHEMA, "version": VERSION, "source": self.source} if self.is_complete else {}
        made = {**head, "arrays": {path: asdict(one) for path, one in self.arrays.items()}}
        return json.dumps(made, indent=1, ensure_ascii=False, default=int) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the file completely or not at all."""
        replace_with(Path(path), self.to_json().encode())


def _array(where: str, given: Mapping[str, Any]) -> AdvisedArray:
    _check_keys(where, given, ARRAY_KEYS)
    told = {key: value for key, value in given.items() if value is not None}
    try:
        return AdvisedArray(**told)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _content(path: Path) -> Any:
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
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"the key {key!r} is there twice")
        content[key] = value
    return content


def _check_keys(where: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{where}: unknown key {key!r}{meant_or_choose(str(key), known)}")
