"""HTML for sections and tables. All text is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hyperslab.report.tables import Table

# Cells that match hold numbers, which are set in digits of equal width.
_FIGURES = frozenset("0123456789[–<")


def section(anchor: str, title: str, inner: str) -> str:
    """A section with its heading; empty if it has no content."""
    return f'<section id="{anchor}"><h2>{escape(title)}</h2>{inner}</section>' if inner else ""


def table_markup(table: Table, kinds: Sequence[str] = ()) -> str:
    """A table with its title and note; empty if the table has no rows. `kinds` marks rows for a filter."""
    if not table.rows:
        return ""
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    heading = f"<thead><tr>{header}</tr></thead>" if any(table.header) else ""
    rows = "".join(_row(row, kinds[position] if kinds else "") for position, row in enumerate(table.rows))
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="sheet"><h3>{escape(table.title)}</h3>'
        f'<div class="scroll"><table>{heading}<tbody>{rows}</tbody></table></div>{note}</div>'
    )


def _row(row: tuple[str, ...], kind: str) -> str:
    if kind:
        cells = "".join(_cell(text, position, len(row)) for position, text in enumerate(row[:-1]))
        return f'<tr data-verdict="{escape(kind)}">{cells}{_verdict_cell(row[-1])}</tr>'
    cells = "".join(_cell(text, position, len(row)) for position, text in enumerate(row))
    return f"<tr>{cells}</tr>"


def _verdict_cell(text: str) -> str:
    verdict, _, reason = text.partition(": ")
    return f'<td><strong>{escape(verdict)}</strong> <span class="reason">{escape(reason)}</span></td>'


def _cell(text: str, position: int, width: int) -> str:
    if position == 0:
        return f'<th scope="row">{escape(text)}</th>'
    is_figure = width > 2 and text[:1] in _FIGURES
    return f'<td class="figure">{escape(text)}</td>' if is_figure else f"<td>{escape(text)}</td>"
