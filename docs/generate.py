"""Generate documentation from the code and from results: docs/formats.md, docs/boundaries.md, the JSON schema of
studies, README's figure, and the speed tables in docs/reading.md, remote.md, references.md and versions.md.

`make docs` runs this. A test fails if the committed files differ from the output.
"""

from __future__ import annotations

import inspect
import json
import runpy
import sys
from pathlib import Path

from hyperslab.bench.records import BOUNDARIES, METRICS
from hyperslab.bench.study import STUDIES_DIRECTORY, json_schema
from hyperslab.formats import FORMATS, format_class
from hyperslab.formats.contract import Format

DOCS = Path(__file__).parent
BENCHMARKS = DOCS.parent / "benchmarks"
ABILITIES = ("contiguous", "chunks", "shards", "slices", "strided", "overwrite", "append", "compound", "many_arrays")


def formats_page() -> str:
    """The table of formats and the manual page of each."""
    known = {name: format_class(name) for name in FORMATS}
    head = "| format | " + " | ".join(name.replace("_", " ") for name in ABILITIES) + " | codecs | bytes on disk |\n"
    head += "|---" * (len(ABILITIES) + 3) + "|\n"
    rows = "".join(_row(name, made) for name, made in known.items())
    pages = "".join(f"\n## {name}\n\n{_page(made)}\n" for name, made in known.items())
    intro = (
        "# Formats\n\n`make docs` generates this page from the code. The conformance suite, `tests/formats/`,\n"
        "checks every claim. If a format cannot do what a study asks, hyperslab says why before anything runs.\n\n"
    )
    return intro + head + rows + pages


def _row(name: str, made: type[Format]) -> str:
    can = made.capabilities
    marks = " | ".join("yes" if getattr(can, ability) else "–" for ability in ABILITIES)
    return f"| [{name}](#{name}) | {marks} | {', '.join(sorted(can.codecs)) or '–'} | {can.byte_order} |\n"


def _page(made: type[Format]) -> str:
    can = made.capabilities
    said = inspect.getdoc(sys.modules[made.__module__]) or ""
    notes = f"\n\n{can.notes}" if can.notes else ""
    return f"{said}{notes}\n\nDefault layout: {made.default_layout}. dtypes: {', '.join(sorted(can.dtypes))}."


def boundaries_page() -> str:
    """The page that says where every timer begins and ends."""
    phases = "".join(f"| {name} | {said} |\n" for name, said in BOUNDARIES.items())
    sums = "".join(f"| {name} | {' + '.join(parts)} |\n" for name, parts in METRICS.items() if len(parts) > 1)
    return (
        "# What is timed\n\n`make docs` generates this page from `bench/records.py`, which declares the "
        "boundaries.\n\n| phase | what its timer includes |\n|---|---|\n" + phases + "\nMetrics are sums of phases:\n\n"
        "| metric | phases, if they are part of the operation |\n|---|---|\n" + sums
    )


def with_table(page: str, name: str, in_words: str) -> str:
    """The text of a page with its speed table regenerated between the two marks."""
    begins, ends = f"<!-- The table is made by `make docs` from {name}.json. -->\n", "<!-- The table ends. -->"
    before, _, rest = (DOCS / page).read_text().partition(begins)
    _, found, after = rest.partition(ends)
    if not found:
        raise ValueError(f"docs/{page} lacks {begins.strip()} or {ends}")
    markdown = runpy.run_path(str(BENCHMARKS / "speed_table.py"))[in_words]
    results = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())
    return before + begins + str(markdown(results)) + ends + after


def pages() -> dict[Path, str]:
    """The path and content of every generated file."""
    return {
        DOCS / "formats.md": formats_page(),
        DOCS / "boundaries.md": boundaries_page(),
        DOCS / "reading.md": with_table("reading.md", "read_speed", "markdown"),
        DOCS / "remote.md": with_table("remote.md", "remote_speed", "far_markdown"),
        DOCS / "references.md": with_table("references.md", "references", "references_markdown"),
        DOCS / "versions.md": with_table("versions.md", "versions_speed", "versions_markdown"),
        DOCS / "images" / "reading.svg": str(runpy.run_path(str(DOCS / "figure.py"))["reading_svg"]()),
        STUDIES_DIRECTORY / "study.schema.json": json_schema(),
    }


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(content)
        print(path)
