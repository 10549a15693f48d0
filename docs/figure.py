"""The figure of README.md, made from the committed measurements in benchmarks/results/: `make docs` draws it again.

The SVG needs no font and no library: it is 4 KB of text, and the same on every machine.
"""

from __future__ import annotations

import json
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
WIDTH, LEFT, BAR, PITCH, TOP = 600, 20, 20, 88, 84
BEFORE, AFTER, INK, FAINT = "#b8bfc9", "#1b6ca8", "#1c2733", "#5b6775"


@dataclass(frozen=True)
class Pair:
    """One kind of program, measured with and without hyperslab."""

    said: str
    before: float
    after: float
    low: float
    high: float


def pairs() -> tuple[list[Pair], dict[str, Any]]:
    """The measured pairs, and the environment in which they were measured."""
    found, environment = [], {}
    for name, key, theirs, said in SHOWN:
        results = json.loads((RESULTS / f"{name}.json").read_text())
        row = results["rows"][key]
        (ratio,) = (c for c in row["comparisons"] if c["peer"] == theirs)
        found.append(
            Pair(said, row["seconds"][theirs], row["seconds"]["hyperslab"], 1 / ratio["high"], 1 / ratio["low"])
        )
        environment = results["environment"] | {"megabytes": results["megabytes"]}
    return found, environment


def _text(x: float, y: float, said: str, size: int = 16, fill: str = INK, weight: str = "normal") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" font-weight="{weight}">{escape(said)}</text>'


def _bar(y: float, length: float, colour: str) -> str:
    return f'<rect x="{LEFT}" y="{y:g}" width="{length:.1f}" height="{BAR}" rx="2" fill="{colour}"/>'


def reading_svg() -> str:
    """Seconds to read the same compressed file, with and without hyperslab."""
    found, environment = pairs()
    scale = (WIDTH - LEFT - 100) / max(pair.before for pair in found)
    height = TOP + PITCH * len(found) + 66
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        "<title>Seconds to read a compressed HDF5 or NetCDF-4 file, without hyperslab and with it</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        _text(LEFT, 32, f"Seconds to read {environment['megabytes']} MiB from a compressed file", 20, weight="600"),
        f'<rect x="{LEFT}" y="48" width="14" height="14" rx="2" fill="{BEFORE}"/>',
        _text(LEFT + 20, 60, "without hyperslab", 15),
        f'<rect x="{LEFT + 170}" y="48" width="14" height="14" rx="2" fill="{AFTER}"/>',
        _text(LEFT + 190, 60, "with hyperslab", 15),
    ]
    for position, pair in enumerate(found):
        top = TOP + position * PITCH
        parts.append(_text(LEFT, top + 14, pair.said))
        for offset, seconds, colour in ((22, pair.before, BEFORE), (45, pair.after, AFTER)):
            length = seconds * scale
            parts.append(_bar(top + offset, length, colour))
            parts.append(_text(LEFT + length + 8, top + offset + 16, f"{seconds:.2f} s", 15))
        times = f"{pair.before / pair.after:.1f} times as fast [{pair.low:.1f}, {pair.high:.1f}]"
        parts.append(_text(LEFT + pair.after * scale + 70, top + 61, times, 15, AFTER, "600"))
    h5py, cpu, count = environment["libraries"]["h5py"], environment["cpu"], environment["cpu_count"]
    conditions = (
        f"float32, deflate 4 with shuffle, chunks of 1 MiB, in the page cache; h5py {h5py}.",
        f"{cpu}, {count} processors. Medians; in brackets the 95 % interval of the ratio.",
    )
    parts += [_text(LEFT, height - 42 + 20 * line, said, 13, FAINT) for line, said in enumerate(conditions)]
    return "\n".join([*parts, "</svg>"]) + "\n"
