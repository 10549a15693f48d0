"""The commands that remedy faults. Every command that an audit names is made here, and nowhere else."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
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
    target = _beside(name)
    if not chunks and not plain_codec:
        return (f"hyperslab convert {_quoted(name)} {_quoted(target)} --relayout",) if relayout else ()
    wishes = [f"{array}:{','.join(map(str, shape))}" for array, shape in (chunks or {}).items()]
    options = [f"--chunks {_quoted(wish)}" for wish in wishes]
    options += [f"--codec {PLAIN_CODEC}"] if plain_codec else []
    # `convert` puts the metadata in front only when it copies chunks: that is a second step.
    middle = _beside(target, "chunks")
    first = f"hyperslab convert {_quoted(name)} {_quoted(middle)} {' '.join(options)}"
    return first, f"hyperslab convert {_quoted(middle)} {_quoted(target)} --relayout"


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
