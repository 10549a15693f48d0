"""What notebooks show of groups and arrays: a tree whose branches and attributes open at a click."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from itertools import islice
from typing import Any

from hyperslab._core import ReadPlan
from hyperslab.archive.views import display
from hyperslab.archive.views.display import Branch
from hyperslab.errors import printable
from hyperslab.quantities import nbytes_text

MOST_NODES, MOST_ATTRIBUTES, MOST_LENGTH = 300, 50, 200
_STYLE = "font-family: monospace; overflow-x: auto; overflow-wrap: anywhere"
_CHILDREN = "margin-left: 1.2em"
_CELL = "text-align: left; padding: 0 1em 0 0; white-space: nowrap"


def leaf(branch: Branch) -> str:
    """A name with its attributes, and nothing below it."""
    return f'<div style="{_STYLE}">{_leaf(branch)}</div>'


def tree(name: str, filename: str, attributes: Callable[[], Mapping[str, Any]], branches: Iterator[Branch]) -> str:
    """Everything below a group, of at most `MOST_NODES` names. Groups in the first level are open."""
    head = f"<b>hyperslab.Group</b> {_text(name)} of {_text(filename)}"
    body = "".join(_nodes(branches, [MOST_NODES], depth=0))
    return f'<div style="{_STYLE}">{head}{_attributes(attributes)}{body}</div>'


def rows(head: str, name: str, columns: Sequence[str], cells: Iterable[Sequence[object]], notes: Sequence[str]) -> str:
    """What an object that is a list shows: a line that opens a table of at most `MOST_NODES` rows, and notes."""
    listed = list(islice(cells, MOST_NODES + 1))
    lines = [_row("th", columns), *(_row("td", row) for row in listed[:MOST_NODES])]
    lines += [_row("td", ["…"])] if len(listed) > MOST_NODES else []
    table = f'<table style="border-collapse: collapse">{"".join(lines)}</table>' if listed else ""
    said = "".join(f"<div>{_text(one)}</div>" for one in notes)
    summary = f"<summary><b>{_text(head)}</b> {_text(name)}</summary>"
    return f'<div style="{_STYLE}"><details open>{summary}<div style="{_CHILDREN}">{said}{table}</div></details></div>'


def facts(head: str, name: str, known: Iterable[tuple[str, object]], notes: Sequence[str] = ()) -> str:
    """What an object that is a record shows: what it knows, and notes in sentences."""
    return rows(head, name, ("what", "how much"), known, notes)


def drawn(name: str, shown: object) -> str:
    """What `report`, which stands above the objects that it draws, makes of one. A repr never raises: it says why not.

    Parameters
    ----------
    name : str
        The function of `report.notebooks` that draws it.
    shown : object
        What it draws.
    """
    try:
        return str(getattr(import_module("hyperslab.report.notebooks"), name)(shown))
    except Exception as error:
        return f"<div>{_text(f'nothing is drawn: {error}')}</div>"


def plan(shown: ReadPlan) -> str:
    """What a read takes: its totals, with a line that says how much more it decodes than it returns."""
    chunks = display.counted(shown.chunk_count, "chunk", "chunks")
    if missing := shown.missing_chunk_count:
        chunks += f", {missing:,} of them never written (fill values)"
    sizes = [("fetched", shown.fetched_nbytes), ("decoded", shown.decoded_nbytes), ("returned", shown.output_nbytes)]
    cells = [("elements", f"{shown.element_count:,}"), ("chunks", chunks), ("requests", f"{shown.request_count:,}")]
    cells += [(name, nbytes_text(nbytes)) for name, nbytes in sizes]
    ratio = shown.read_amplification
    notes = [] if ratio is None else [f"decodes {ratio:.3g} times as many bytes as it returns"]
    shape = " × ".join(map(str, shown.shape)) or "one element"
    return facts("hyperslab.ReadPlan", shape, cells, notes)


def _row(tag: str, cells: Sequence[object]) -> str:
    inside = "".join(f'<{tag} style="{_CELL}">{_text(str(cell))}</{tag}>' for cell in cells)
    return f"<tr>{inside}</tr>"


def _nodes(branches: Iterator[Branch], left: list[int], depth: int) -> Iterator[str]:
    """The branches. `left` counts down over the whole tree."""
    for branch in branches:
        if left[0] <= 0:
            yield "<div>…</div>"
            return
        left[0] -= 1
        if branch.below is None:
            yield f"<div>{_leaf(branch)}</div>"
            continue
        inside = "".join(_nodes(branch.below(), left, depth + 1))
        is_open = " open" if depth == 0 else ""
        head = f"<summary>{_text(branch.name)}{_text(branch.said)}</summary>{_attributes(branch.attributes)}"
        yield f'<details{is_open}>{head}<div style="{_CHILDREN}">{inside}</div></details>'


def _leaf(branch: Branch) -> str:
    if branch.attributes is None:
        return _text(branch.name) + _text(branch.said)
    line = f"<b>{_text(branch.name)}</b>{_text(branch.said)}"
    return _attributes(branch.attributes, line) or line


def _attributes(attributes: Callable[[], Mapping[str, Any]] | None, summary: str = "attributes") -> str:
    """The attributes behind a line that opens. Empty if there are none."""
    try:
        known = {} if attributes is None else attributes()
        names = list(known)
        rows = [f"{_text(name)} = {_value(known, name)}" for name in names[:MOST_ATTRIBUTES]]
    except Exception as error:  # a repr never raises
        names, rows = [""], [_text(f"attributes cannot be read: {error}")]
    if not names:
        return ""
    rows += [f"… {len(names) - MOST_ATTRIBUTES} more"] if len(names) > MOST_ATTRIBUTES else []
    inside = "".join(f"<div>{row}</div>" for row in rows)
    return f'<details><summary>{summary}</summary><div style="{_CHILDREN}">{inside}</div></details>'


def _value(attributes: Mapping[str, Any], name: str) -> str:
    try:
        said = printable(str(attributes[name]))
    except Exception as error:  # one attribute does not hide the others
        said = f"({error})"
    return _text(said if len(said) <= MOST_LENGTH else f"{said[:MOST_LENGTH]}…")


def _text(said: str) -> str:
    return escape(printable(said))
