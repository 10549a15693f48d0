"""One self-contained page about an audit: the answer, the groups of files with the same fault, a table that sorts."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files as package_files
from itertools import islice
from pathlib import Path

from hyperslab.archive.views import display
from hyperslab.audit.distance import Distance
from hyperslab.audit.file_audit import FileAudit
from hyperslab.audit.ledger import FaultGroup, Ledger
from hyperslab.audit.words import headline, remedy_lines, sum_lines
from hyperslab.errors import printable
from hyperslab.quantities import UNKNOWN, digits, nbytes_text, seconds_text
from hyperslab.replacing import replacing
from hyperslab.report.markup import section

# The page fetches nothing; its script only sorts its table.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
MOST_ROWS = 5000
HEADER = (
    "file", "grade", "size", "requests to open", "seconds to open", "arrays", "main chunk", "ratio", "never written",
    "seconds at the distance", "seconds here", "saved by the remedy",
)  # fmt: skip
STYLE = """
pre { overflow-x: auto; background: var(--raised); border: 1px solid var(--rule); border-radius: 6px;
  padding: .5rem .8rem; font-size: .85rem; margin: .4rem 0 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
thead button { border: 0; background: none; padding: 0; font: inherit; color: inherit; text-align: left; }
thead th[aria-sort="descending"] button::after { content: " ↓"; }
thead th[aria-sort="ascending"] button::after { content: " ↑"; }
tbody th { white-space: normal; min-width: 16rem; max-width: 26rem; font-weight: 500; overflow-wrap: anywhere; }
.why { display: block; font-weight: 400; font-size: .8rem; color: var(--muted); }
.poor, .unreadable { color: var(--bad); } .slow { color: var(--open); } .good { color: var(--good); }
ol.groups > li { margin-bottom: .8rem; overflow-wrap: anywhere; }
@media (max-width: 62rem) { body { overflow-wrap: anywhere; } tbody th { min-width: 11rem; } }
"""


def write_page(path: Path, ledger: Ledger, distance: Distance) -> None:
    """Write the page, row by row. It needs no network. An existing page is replaced when everything is written."""
    with replacing(path) as beside, beside.open("w", encoding="utf-8", errors="backslashreplace") as page:
        for part in _parts(ledger, distance):
            page.write(part)


def _parts(ledger: Ledger, distance: Distance) -> Iterator[str]:
    sums = ledger.sums
    css = package_files("hyperslab.report").joinpath("page.css").read_text(encoding="utf-8")
    said = list(sum_lines(sums, distance))
    yield "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>hyperslab audit: {escape(headline(sums))}</title><style>{css}{STYLE}</style></head><body>",
            '<nav aria-label="Contents"><p class="mark">hyperslab</p><ol><li><a href="#faults">What is wrong</a></li>',
            '<li><a href="#files">Files</a></li></ol></nav>',
            '<main><header><p class="kicker">Which files are slow, and what remedies them</p>',
            f"<h1>{escape(headline(sums))}</h1>",
            *(f"<p>{escape(one[:1].upper() + one[1:])}.</p>" for one in said[1:]),
            "</header>",
            section("faults", "What is wrong", _groups(sums.worst_groups())),
        ]
    )
    yield '<section id="files"><h2>Files</h2>' + _note(sums.file_count, distance)
    yield f'<div class="scroll"><table data-sorts><thead><tr>{_heading()}</tr></thead><tbody>'
    for one in islice(ledger.worst_first(), MOST_ROWS):
        yield _row(one)
    yield "</tbody></table></div></section></main>"
    script = package_files("hyperslab.report").joinpath("sorting.js").read_text(encoding="utf-8")
    yield f"<script>{script}</script></body></html>"


def _note(file_count: int, distance: Distance) -> str:
    shown = f" The worst {MOST_ROWS:,} of {file_count:,} are here." if file_count > MOST_ROWS else ""
    return (
        '<p class="note">The worst come first; a click on a heading sorts. Seconds at the distance count waiting and '
        f"transfer without decoding, {distance.round_trip_seconds * 1000:g} ms away and at "
        f"{nbytes_text(int(distance.nbytes_per_second))} a second.{shown}</p>"
    )


def _groups(groups: list[FaultGroup]) -> str:
    if not groups:
        return "<p>Nothing was found.</p>"
    return f'<ol class="groups">{"".join(map(_group, groups))}</ol>'


def _group(group: FaultGroup) -> str:
    files = display.counted(group.file_count, "file", "files")
    saved = f", costs {seconds_text(group.saved_seconds)}" if group.saved_seconds else ""
    title = f"{group.title[:1].upper()}{group.title[1:]}"
    lines = [f"<strong>{escape(title)}</strong>: {files} ({nbytes_text(group.nbytes)}){escape(saved)}."]
    lines.append(f"Such as {escape(printable(group.worst[0][1]))}: {escape(printable(group.said))}.")
    if group.commands:
        lines.append(f"<pre>{escape(chr(10).join(map(printable, group.commands)))}</pre>")
    return f"<li>{' '.join(lines)}</li>"


def _heading() -> str:
    return "".join(f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in HEADER)


def _row(audit: FileAudit) -> str:
    """A row; each cell has the number by which its column sorts."""
    ratio = audit.decoded_nbytes / audit.stored_nbytes if audit.stored_nbytes else None
    cells = (
        (audit.nbytes, nbytes_text(audit.nbytes)),
        (audit.request_count, UNKNOWN if audit.request_count is None else f"{audit.request_count:,}"),
        (audit.open_seconds, seconds_text(audit.open_seconds)),
        (audit.array_count, f"{audit.array_count:,}"),
        (
            audit.main_chunk_nbytes,
            UNKNOWN if audit.main_chunk_nbytes is None else nbytes_text(audit.main_chunk_nbytes),
        ),
        (ratio, digits(ratio)),
        (audit.missing_chunk_count, f"{audit.missing_chunk_count:,}"),
        (audit.seconds, seconds_text(audit.seconds)),
        (audit.local_seconds, seconds_text(audit.local_seconds)),
        (audit.saved_seconds, seconds_text(audit.saved_seconds)),
    )
    below = [audit.reason, *audit.unmet, *remedy_lines(audit)]
    why = "".join(f'<span class="why">{escape(printable(said))}</span>' for said in dict.fromkeys(below))
    shown = "".join(
        f'<td class="figure" data-by="{-1 if by is None else by}">{escape(text)}</td>' for by, text in cells
    )
    return (
        f'<tr><th scope="row">{escape(printable(audit.name))}{why}</th>'
        f'<td data-by="{audit.rank}"><strong class="{audit.grade}">{audit.grade}</strong></td>{shown}</tr>\n'
    )
