"""Numbers of bytes as people write them."""

from __future__ import annotations

import re

from hyperslab.errors import UsageError

MOST_NBYTES = 2.0**63
UNITS = {
    "": 1,
    "k": 1000,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}


def nbytes_of(text: str | None, option: str) -> int | None:
    """A size such as `64MiB`, `500 kB` or `1000000`, in bytes.

    Raises
    ------
    UsageError
        The text is not a size. The message names the option.
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?\s*", text, flags=re.IGNORECASE)
    nbytes = None if match is None else float(match[1]) * UNITS[match[2].lower()]
    if nbytes is None or nbytes >= MOST_NBYTES:
        raise UsageError(f"{option} {text!r} is not a size: write 64MiB, 500kB or a number of bytes")
    return int(nbytes)
