"""The commands that remedy faults. Every command that an audit names is made here, and nowhere else."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from hyperslab.errors import printable

PLAIN_CODEC = "shuffle+deflate:4"


def commands(
    name: str,
    *,
    chunks: Mapping[str, Sequence[int]] | None = None,
    relayout: bool = False,
    plain_codec: bool = False,
) -> tuple[str, ...]:
    """The commands for one file: new chunks for some arrays, a codec that every HDF5 has, the metadata in front.

    Parameters
    ----------
    name : str
        The file.
    chunks : Mapping[str, Sequence[int]] | None
        Chunk shapes by array.
    relayout : bool
        Whether the metadata have to come to the front.
    plain_codec : bool
        Whether a codec is needed that every HDF5 has.
    """
    steps = _steps(chunks or {}, relayout=relayout, plain_codec=plain_codec)
    if not steps:
        return ()
    names = [name, *(_beside(name, "chunks") for _ in steps[1:]), _beside(name)]
    return tuple(
        f"hyperslab convert {_quoted(source)} {_quoted(target)} {step}"
        for step, (source, target) in zip(steps, pairwise(names), strict=True)
    )


def _steps(chunks: Mapping[str, Sequence[int]], *, relayout: bool, plain_codec: bool) -> list[str]:
    """The options of each `convert`. New files have their metadata in front in any case."""
    wishes = [f"{array}:{','.join(map(str, shape))}" for array, shape in chunks.items()]
    options = [f"--chunks {_quoted(wish)}" for wish in wishes]
    options += [f"--codec {PLAIN_CODEC}"] if plain_codec else []
    if options:
        return [" ".join(options)]
    return ["--relayout"] if relayout else []


def check(name: str) -> tuple[str, ...]:
    """The command that finds out what is wrong with a file that cannot be read."""
    return (f"hyperslab verify {_quoted(name)}",)


def _beside(name: str, word: str = "better") -> str:
    """The name of the better file: beside a local file, and here for a URL."""
    path = PurePosixPath(name.partition("?")[0].rpartition("/")[2] if "://" in name else name)
    return str(path.with_name(f"{path.stem}-{word}{path.suffix}")) if path.name else f"{word}.nc"


def _quoted(text: str) -> str:
    """A word of a shell's line; control characters in a form that a shell reads back."""
    if printable(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(_ansi(one) for one in text) + "'"


def _ansi(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if printable(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
