"""Names and titles for what reports show: contenders, metrics, cache states, operations, arrays."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import numpy as np

from hyperslab.bench.operations import OPERATIONS
from hyperslab.bench.records import Summary
from hyperslab.bench.study import Case, Conditions

_ABSOLUTE = re.compile(r"(?<![\w:/.])/(?:[^\s/'\"<>:,;()]+/)+([^\s/'\"<>:,;()]*)")

# Contenders that are a format with a reader that is not its own.
CONTENDERS: dict[str, str] = {"hyperslab": "hdf5, read by hyperslab", "hdf5-zarr": "hdf5, read by zarr-python"}

METRIC_TITLES: dict[str, str] = {
    "create_total": "create",
    "write_durable": "write until durable",
    "write_total": "create and write, until durable",
    "open_total": "open",
    "read_total": "open, read and close",
}
# Published timers may stop earlier than ours, so these titles promise less.
PUBLISHED_TITLES: dict[str, str] = {
    "create_total": "create, as published",
    "write": "write alone, as published",
    "write_durable": "write, as published",
    "write_total": "create and write, as published",
    "open_total": "open, as published",
    "read": "read alone, as published",
    "read_total": "open and read, as published",
}
CACHE_TITLES: dict[str, str] = {
    "cold": "cold cache",
    "warm": "warm cache",
    "unknown": "unknown cache",
    "new": "new file",
}


def known(value: object) -> str:
    """A value of the environment, or `unknown`."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def cache_title(cache: str) -> str:
    """A cache state in words."""
    return CACHE_TITLES.get(cache, cache)


def metric_title(metric: str, method: str = "fair") -> str:
    """A metric in words."""
    if method == "published" and metric in PUBLISHED_TITLES:
        return PUBLISHED_TITLES[metric]
    return METRIC_TITLES.get(metric, metric.replace("_", " "))


def operation_title(label: str) -> str:
    """The title of an operation, with its parameters as the study gives them."""
    name, _, parameters = label.partition("(")
    kind = OPERATIONS.get(name)
    title = name if kind is None else f"read {kind.title}" if kind.verb == "read" else kind.title
    return f"{title} ({parameters}" if parameters else title


def dtype_text(dtype: str) -> str:
    """A dtype in words; for a compound dtype, the number of its fields and their dtypes."""
    if not dtype.startswith("["):
        return dtype
    kinds = dict.fromkeys(np.dtype(kind).name for _, kind in ast.literal_eval(dtype))
    return f"compound of {len(ast.literal_eval(dtype))} {' and '.join(kinds)}"


def arrays_text(shape: str, count: int, dtype: str) -> str:
    """The arrays of a file, for example "2048 arrays of float32 [128 × 128]"."""
    one = f"{dtype_text(dtype)} [{shape.replace('x', ' × ')}]"
    return f"1 array of {one}" if count == 1 else f"{count:,} arrays of {one}"


def conditions_text(case: Case | None, name: str, method: str = "fair") -> str:
    """Conditions in words: their chunks and codecs, or each library's own choice."""
    said = case.conditions.get(name) if case else None
    if said is None:
        return name
    if method == "published":
        packed = isinstance(said, Conditions) and said.codecs
        return f"{name} (the published program's own layout, {'compressed' if packed else 'not compressed'})"
    if not isinstance(said, Conditions):
        return f"{name} (each library's own layout)"
    chunks = said.chunks if isinstance(said.chunks, str) else f"chunks {'×'.join(map(str, said.chunks))}"
    layout = "chunks of about 1 MiB" if chunks == "auto" else chunks
    return f"{name} ({layout}, {' → '.join(said.codecs) or 'no codec'})"


def trials_text(counts: Iterable[int]) -> str:
    """The number of trials behind a figure, for example "n = 5 to 10"."""
    least, most = min(known_counts := list(counts)), max(known_counts)
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def contender_title(name: str) -> str:
    """A contender in words: its format, and its reader if that is not the format's own library."""
    return CONTENDERS.get(name, name)


def without_folders(text: str) -> str:
    """A text without the folders of absolute paths: reports are passed on, and do not say where your files are."""
    return _ABSOLUTE.sub(r"\1", text)


def is_per_array(summary: Summary) -> bool:
    """Whether to show a time per array, as the papers do for operations that touch each of many arrays."""
    name = summary.operation.partition("(")[0]
    return summary.count > 1 and name in {"write", "write-separate", "write-fields", "read-all"}
