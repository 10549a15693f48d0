"""Traces without a program, and a parser that tells whether a page is well formed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np

import hyperslab as hs
from hyperslab.trace.recording.selecting import plain_key
from hyperslab.trace.table import COLUMNS, TracedArray


def made_trace(keys: list[Any], array: TracedArray, seconds: float = 0.01) -> hs.Trace:
    """Reads one after another, each of which takes half of its time."""
    columns = {name: np.zeros(len(keys), dtype) for name, dtype in COLUMNS.items()}
    columns["start_ns"][:] = np.arange(len(keys)) * int(seconds * 1e9)
    columns["duration_ns"][:] = int(seconds * 5e8)
    parts = []
    for place, key in enumerate(keys):
        (kind, numbers), size = plain_key(key, array.shape)
        columns["kind"][place], columns["nbytes"][place] = kind, size * array.element_nbytes
        parts.append(np.array(numbers, np.int64))
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    program = {"arguments": ["python", "a.py"], "seconds": len(keys) * seconds}
    return hs.Trace([array], columns, offsets, np.concatenate(parts), program=program)


def array_of(shape: tuple[int, ...], chunks: tuple[int, ...] | None, **more: Any) -> TracedArray:
    return TracedArray("h5py", "/no/a.h5", "/x", shape, chunks, None, "<f4", 4, ("deflate",), "chunked", **more)


class Tags(HTMLParser):
    """Whether every element is closed."""

    VOID = ("meta", "rect", "line", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag
