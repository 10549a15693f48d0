"""Names as callers give them: text, or bytes."""

from __future__ import annotations


def as_text(name: object) -> str:
    """A name as text.

    Raises
    ------
    TypeError
        It is neither text nor bytes.
    """
    if isinstance(name, str):
        return name
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    raise TypeError(f"A name should be string or bytes, not {type(name)}")
