"""Names, which callers may give as text or bytes."""

from __future__ import annotations


def as_text(name: object) -> str:
    """Convert a name to text.

    Raises
    ------
    TypeError
        The name is neither text nor bytes.
    """
    if isinstance(name, str):
        return name
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    raise TypeError(f"A name should be string or bytes, not {type(name)}")
