"""What CMIP7's archive asks of chunks: `convert --for cmip7` makes files so, and `audit --require cmip7` judges them.

Time and its bounds have one chunk each; the data variable has one, or chunks of at least 4 MiB. The rule is that of
`check_cmip7_packing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.errors import HyperslabError

LEAST_NBYTES = 4 << 20  # of a decoded chunk


def time_arrays(group: Group) -> Iterator[tuple[Array, str]]:
    """The arrays that must have one chunk each, with what they are: `time`, and what its attribute `bounds` names."""
    time = _member(group, "time")
    if time is None:
        return
    yield time, "the time coordinate"
    bounds = _member(group, attribute_text(time, "bounds"))
    if bounds is not None:
        yield bounds, "the time bounds"


def data_variable(group: Group) -> Array | None:
    """The array that the attribute `variable_id` names."""
    return _member(group, attribute_text(group, "variable_id"))


def spare_nbytes(chunks: Sequence[int], element_nbytes: int) -> int:
    """What chunks may lack: they are large enough if they would be with one more step along the first axis."""
    return prod(chunks[1:]) * element_nbytes if len(chunks) > 1 else 0


def are_large_enough(chunks: Sequence[int], element_nbytes: int) -> bool:
    """Whether several chunks of this shape suit the archive."""
    return prod(chunks) * element_nbytes + spare_nbytes(chunks, element_nbytes) >= LEAST_NBYTES


def attribute_text(node: Group | Array, name: str) -> str:
    """The text of an attribute, however it is stored; empty if there is none."""
    try:
        value: Any = node.attrs.get(name)
    except (HyperslabError, OSError):
        return ""
    elements = np.asarray("" if value is None else value).reshape(-1)
    one = elements[0] if elements.size == 1 else ""
    return one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)


def _member(group: Group, name: str) -> Array | None:
    """The array of this name in the root group, if it can be opened."""
    if not name or "/" in name.strip("/"):
        return None
    try:
        found = group.get(name.strip("/"))
    except (HyperslabError, OSError):
        return None
    return found if isinstance(found, Array) else None
