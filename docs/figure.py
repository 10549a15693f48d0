"""Figures with bars, of README.md and of the gallery, made from the committed measurements in benchmarks/results/.

`make docs` draws them again. The SVG needs no font and no library: it is 4 kB of text, and the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
# the file of results, its row, the side that we are compared with, and what the reader does
SHOWN = [
    ("read_speed", "deflate", "h5py", "hyperslab.open instead of h5py"),
    ("run_speed", "h5py-whole-deflate", "without us", "an h5py program, unchanged, with hyperslab run"),
    ("run_speed", "netCDF4-whole-deflate", "without us", "a netCDF4 program, unchanged, with hyperslab run"),
    ("run_speed", "xarray-rows-deflate", "without us", "an xarray program that reads row by row, unchanged"),
]
SHOWN_FAR = [
    ("remote_speed", "w8-nothing", "h5py + fsspec", "h5py through fsspec, from nothing"),
    ("remote_speed", "w8-nothing", "VirtualiZarr", "VirtualiZarr, from nothing"),
    ("remote_speed", "w8-ready", "kerchunk + zarr", "kerchunk and zarr, with references that are ready"),
]
MOST_ACCESSES = 2
WIDTH, LEFT, BAR, PITCH, TOP = 600, 20, 20, 88, 84
BEFORE, AFTER, INK, FAINT = "#b8bfc9", "#1b6ca8", "#1c2733", "#5b6775"


@dataclass(frozen=True)
class Pair:
    """Seconds of one thing, before and after; the interval of their ratio, if it was measured."""

    said: str
    before: float
    after: float
    interval: tuple[float, float] | None = None

    @property
    def times(self) -> str:
        """How many times as fast it is."""
        said = f"{self.before / self.after:.1f} times as fast"
        return said if self.interval is None else f"{said} [{self.interval[0]:.1f}, {self.interval[1]:.1f}]"


@dataclass(frozen=True)
class Words:
    """What stands around the bars."""

    title: str
    heading: str
    before: str
    after: str
    conditions: tuple[str, ...]


def measured(shown: Sequence[tuple[str, str, str, str]]) -> tuple[list[Pair], dict[str, Any]]:
    """The measured pairs, and the environment in which they were measured."""
    found, environment = [], {}
    for name, key, theirs, said in shown:
        results = json.loads((RESULTS / f"{name}.json").read_text())
        row = results["rows"][key]
        (ratio,) = (c for c in row["comparisons"] if c["peer"] == theirs)
        interval = (1 / ratio["high"], 1 / ratio["low"])
        found.append(Pair(said, row["seconds"][theirs], row["seconds"]["hyperslab"], interval))
        environment = results["environment"] | {"megabytes": results["megabytes"]}
    return found, environment


def _text(x: float, y: float, said: str, size: int = 16, fill: str = INK, weight: str = "normal") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" font-weight="{weight}">{escape(said)}</text>'


def _bar(y: float, length: float, colour: str) -> str:
    return f'<rect x="{LEFT}" y="{y:g}" width="{length:.1f}" height="{BAR}" rx="2" fill="{colour}"/>'


def bars_svg(words: Words, pairs: Sequence[Pair]) -> str:
    """Two bars for each pair, with their seconds."""
    scale = (WIDTH - LEFT - 100) / max(pair.before for pair in pairs)
    height = TOP + PITCH * len(pairs) + 26 + 20 * len(words.conditions)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        f"<title>{escape(words.title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        _text(LEFT, 32, words.heading, 20, weight="600"),
        f'<rect x="{LEFT}" y="48" width="14" height="14" rx="2" fill="{BEFORE}"/>',
        _text(LEFT + 20, 60, words.before, 15),
        f'<rect x="{LEFT + 170}" y="48" width="14" height="14" rx="2" fill="{AFTER}"/>',
        _text(LEFT + 190, 60, words.after, 15),
    ]
    for position, pair in enumerate(pairs):
        top = TOP + position * PITCH
        parts.append(_text(LEFT, top + 14, pair.said))
        for offset, seconds, colour in ((22, pair.before, BEFORE), (45, pair.after, AFTER)):
            length = seconds * scale
            parts.append(_bar(top + offset, length, colour))
            parts.append(_text(LEFT + length + 8, top + offset + 16, f"{seconds:.2f} s", 15))
        parts.append(_text(LEFT + pair.after * scale + 70, top + 61, pair.times, 15, AFTER, "600"))
    last = height - 2 - 20 * len(words.conditions)
    parts += [_text(LEFT, last + 20 * line, said, 13, FAINT) for line, said in enumerate(words.conditions)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def reading_svg() -> str:
    """Seconds to read the same compressed file, with and without hyperslab."""
    found, environment = measured(SHOWN)
    h5py, cpu, count = environment["libraries"]["h5py"], environment["cpu"], environment["cpu_count"]
    conditions = (
        f"float32, deflate 4 with shuffle, chunks of 1 MiB, in the page cache; h5py {h5py}.",
        f"{cpu}, {count} processors. Medians; in brackets the 95 % interval of the ratio.",
    )
    title = "Seconds to read a compressed HDF5 or NetCDF-4 file, without hyperslab and with it"
    heading = f"Seconds to read {environment['megabytes']} MiB from a compressed file"
    return bars_svg(Words(title, heading, "without hyperslab", "with hyperslab", conditions), found)


def remote_svg() -> str:
    """Seconds to read a file on a server, by hyperslab and by others."""
    found, environment = measured(SHOWN_FAR)
    libraries = environment["libraries"]
    named = ", ".join(f"{name} {libraries[name]}" for name in ("h5py", "fsspec", "kerchunk", "virtualizarr", "zarr"))
    conditions = (f"{named}.", "HTTP, two processors. Medians; in brackets the 95 % interval of the ratio.")
    title = "Seconds to read a file on a web server, by other libraries and by hyperslab"
    heading = "Seconds to read 64 MiB, 20 ms each way"
    return bars_svg(Words(title, heading, "other libraries", "hyperslab", conditions), found)


def audit_svg(before: Any, after: Any) -> str:
    """Seconds to open a file from afar and to read from it, before and after its remedy, as an audit counts them."""
    found = [
        Pair(
            f"open it: {before.request_count} requests, afterwards {after.request_count}",
            before.open_seconds,
            after.open_seconds,
        )
    ]
    for one, other in list(zip(before.accesses, after.accesses, strict=False))[:MOST_ACCESSES]:
        said = f"{one.access}: {one.request_count} requests, afterwards {other.request_count}"
        found.append(Pair(said, one.far_seconds, other.far_seconds))
    title = "Seconds to open a file and to read from it, before and after its conversion"
    conditions = ("Counted from the metadata of both files: 40 ms a round trip, 100 MB a second.",)
    return bars_svg(Words(title, "Seconds from 40 ms away", "before", "after", conditions), found)
