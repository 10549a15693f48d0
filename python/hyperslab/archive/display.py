"""The repr of groups and arrays: one line for an array, a tree for a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hyperslab.errors import printable

if TYPE_CHECKING:
    from hyperslab.archive.array import Array
    from hyperslab.archive.tree import Group

MOST_LINES = 60


def array(shown: Array) -> str:
    """One line with the name of an array and its facts."""
    return f"<hyperslab.Array {shown.name!r} {facts(shown)}>"


def facts(shown: Array) -> str:
    """An array's element, shape, chunks, codecs and size."""
    try:
        if shown.is_dimension_only:  # what netCDF4 keeps as an array of fill values
            return f"a dimension of length {shown.shape[0]:,}"
        parts = [f"{element(shown)} {shape(shown)}"]
        parts += [f"chunks {shown.chunks}"] if shown.chunks else []
        parts += [printable("+".join(shown.codecs))] if shown.codecs else []
        parts += [size(shown)] if size(shown) else []
    except Exception as error:  # a repr never raises
        return f"cannot be described: {printable(str(error))}"
    parts += [f"via {shown.via}"] if shown.via != "hyperslab" else []
    parts += [f"unsupported: {printable(shown.unsupported)}"] if shown.unsupported and shown.via == "hyperslab" else []
    parts += [f"damaged: {printable(shown.damaged)}"] if shown.damaged else []
    return ", ".join(parts)


def element(shown: Array) -> str:
    """The dtype in a short form."""
    if shown.unsupported and shown.via == "hyperslab":
        return "?"
    metadata: Mapping[str, Any] = shown.dtype.metadata or {}
    vlen = metadata.get("vlen")
    if vlen is not None:
        return "str" if vlen is str else f"vlen {vlen}"
    return f"compound of {len(shown.dtype.names)} fields" if shown.dtype.names else str(shown.dtype)


def shape(shown: Array) -> str:
    """The shape, with the names of the dimensions if there are any."""
    if not shown.dims or len(shown.dims) != shown.ndim:
        return str(shown.shape)
    return (
        "("
        + ", ".join(f"{printable(name)}: {length}" for name, length in zip(shown.dims, shown.shape, strict=True))
        + ")"
    )


def size(shown: Array) -> str:
    """The size in memory, and the stored size if it differs."""
    if shown.unsupported and shown.via == "hyperslab":
        return "" if shown.stored_nbytes is None else f"{nbytes(shown.stored_nbytes)} stored"
    whole, stored = shown.nbytes, shown.stored_nbytes
    if stored is None or stored == whole or not shown.codecs:
        return nbytes(whole)
    return f"{nbytes(whole)} stored in {nbytes(stored)}"


def nbytes(count: float) -> str:
    """A number of bytes in decimal units."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} TB"


def counted(count: int, one: str, more: str) -> str:
    """A count with its noun, such as `1 access` or `21 accesses`."""
    return f"{count:,} {one if count == 1 else more}"


def group(shown: Group) -> str:
    """A tree of everything below a group, of at most `MOST_LINES` lines."""
    lines = [f"<hyperslab.Group {shown.name!r} of {printable(shown.filename)}>"]
    _branches(shown, "", lines, {shown.key})
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "…"]
    return "\n".join(lines)


def _branches(shown: Group, margin: str, lines: list[str], above: set[object]) -> None:
    names = list(shown)
    for position, key in enumerate(names):
        if len(lines) > MOST_LINES:
            return
        is_last = position == len(names) - 1
        start, inner = ("└── ", "    ") if is_last else ("├── ", "│   ")
        name = printable(key)
        try:
            child = shown[key]
        except Exception as error:  # a repr never raises
            lines.append(f"{margin}{start}{name}: {printable(str(error.args[0] if error.args else repr(error)))}")
            continue
        if not isinstance(child, Mapping):
            lines.append(f"{margin}{start}{name}: {facts(child)}")
        elif child.key in above:
            lines.append(f"{margin}{start}{name}/ (again)")
        else:
            lines.append(f"{margin}{start}{name}/")
            _branches(child, margin + inner, lines, above | {child.key})
