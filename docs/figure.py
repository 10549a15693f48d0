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
WIDTH, LEFT, BAR, PITCH, TOP = 760, 24, 18, 82, 62
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


def _text(x: float, y: float, said: str, size: int = 14, fill: str = INK, weight: str = "normal") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" font-weight="{weight}">{escape(said)}</text>'


def reading_svg() -> str:
    """Seconds to read the same compressed file, with and without hyperslab."""
    found, environment = pairs()
    scale = (WIDTH - LEFT - 220) / max(pair.before for pair in found)
    height = TOP + PITCH * len(found) + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        "<title>Seconds to read a compressed HDF5 or NetCDF-4 file, with and without hyperslab</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        _text(LEFT, 34, f"Seconds to read {environment['megabytes']} MiB from a compressed file", 18, weight="600"),
    ]
    for position, pair in enumerate(found):
        top = TOP + position * PITCH
        parts.append(_text(LEFT, top + 12, pair.said))
        for offset, seconds, colour in ((20, pair.before, BEFORE), (42, pair.after, AFTER)):
            length = seconds * scale
            parts.append(
                f'<rect x="{LEFT}" y="{top + offset}" width="{length:.1f}" height="{BAR}" rx="2" fill="{colour}"/>'
            )
            parts.append(_text(LEFT + length + 8, top + offset + 14, f"{seconds:.2f} s", 13, INK))
        times = f"{pair.before / pair.after:.1f} times as fast [{pair.low:.1f}, {pair.high:.1f}]"
        parts.append(_text(LEFT + pair.after * scale + 64, top + 56, times, 13, AFTER, "600"))
    libraries = environment["libraries"]
    conditions = (
        f"float32, deflate 4 with shuffle, chunks of 1 MiB, in the page cache; {environment['cpu']}, "
        f"{environment['cpu_count']} processors; h5py {libraries['h5py']}."
    )
    parts.append(_text(LEFT, height - 34, conditions, 12, FAINT))
    parts.append(_text(LEFT, height - 16, "Medians. In brackets: 95 % interval of the ratio.", 12, FAINT))
    return "\n".join([*parts, "</svg>"]) + "\n"
