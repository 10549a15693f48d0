"""What notebooks show of groups and arrays: a tree whose branches and attributes open at a click."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from hyperslab.archive import display
from hyperslab.errors import printable

if TYPE_CHECKING:
    from hyperslab._core import ReadPlan
    from hyperslab.archive.array import Array
    from hyperslab.archive.tree import Group

MOST_NODES, MOST_ATTRIBUTES, MOST_LENGTH = 300, 50, 200
_STYLE = "font-family: monospace; overflow-x: auto; overflow-wrap: anywhere"
_CHILDREN = "margin-left: 1.2em"
_CELL = "text-align: left; padding: 0 1em 0 0; white-space: nowrap"


def array(shown: Array) -> str:
    """An array's line, with its attributes."""
    return f'<div style="{_STYLE}">{_array(shown.name, shown)}</div>'


def group(shown: Group) -> str:
    """Everything below a group, of at most `MOST_NODES` names. Groups in the first level are open."""
    head = f"<b>hyperslab.Group</b> {_text(shown.name)} of {_text(shown.filename)}"
    body = "".join(_nodes(shown, {shown.key}, [MOST_NODES], depth=0))
    return f'<div style="{_STYLE}">{head}{_attributes(shown)}{body}</div>'


def rows(head: str, name: str, columns: Sequence[str], cells: Iterable[Sequence[object]], facts: Sequence[str]) -> str:
    """What an object that is a list shows: a line that opens a table of at most `MOST_NODES` rows, and facts."""
    listed = list(islice(cells, MOST_NODES + 1))
    lines = [_row("th", columns), *(_row("td", row) for row in listed[:MOST_NODES])]
    lines += [_row("td", ["…"])] if len(listed) > MOST_NODES else []
    table = f'<table style="border-collapse: collapse">{"".join(lines)}</table>' if listed else ""
    said = "".join(f"<div>{_text(one)}</div>" for one in facts)
    summary = f"<summary><b>{_text(head)}</b> {_text(name)}</summary>"
    return f'<div style="{_STYLE}"><details open>{summary}<div style="{_CHILDREN}">{said}{table}</div></details></div>'


def plan(shown: ReadPlan) -> str:
    """What a read takes: its totals, with a line that says how much more it decodes than it returns."""
    chunks = display.counted(shown.chunk_count, "chunk", "chunks")
    if missing := shown.missing_chunk_count:
        chunks += f", {missing:,} of them never written (fill values)"
    sizes = [("fetched", shown.fetched_nbytes), ("decoded", shown.decoded_nbytes), ("returned", shown.output_nbytes)]
    cells = [("elements", f"{shown.element_count:,}"), ("chunks", chunks), ("requests", f"{shown.request_count:,}")]
    cells += [(name, display.nbytes(nbytes)) for name, nbytes in sizes]
    ratio = shown.read_amplification
    facts = [] if ratio is None else [f"decodes {ratio:.3g} times as many bytes as it returns"]
    shape = " × ".join(map(str, shown.shape)) or "one element"
    return rows("hyperslab.ReadPlan", shape, ("what", "how much"), cells, facts)


def _row(tag: str, cells: Sequence[object]) -> str:
    inside = "".join(f'<{tag} style="{_CELL}">{_text(str(cell))}</{tag}>' for cell in cells)
    return f"<tr>{inside}</tr>"


def _nodes(shown: Group, above: set[object], left: list[int], depth: int) -> Iterator[str]:
    """The children. `left` counts down over the whole tree."""
    for name in shown:
        if left[0] <= 0:
            yield "<div>…</div>"
            return
        left[0] -= 1
        try:
            child = shown[name]
        except Exception as error:  # a repr never raises
            said = printable(str(error.args[0] if error.args else repr(error)))
            yield f"<div>{_text(name)}: {_text(said)}</div>"
            continue
        if not isinstance(child, Mapping):
            yield f"<div>{_array(name, child)}</div>"
        elif child.key in above:
            yield f"<div>{_text(name)}/ (again)</div>"
        else:
            inside = "".join(_nodes(child, above | {child.key}, left, depth + 1))
            is_open = " open" if depth == 0 else ""
            head = f"<summary>{_text(name)}/</summary>{_attributes(child)}"
            yield f'<details{is_open}>{head}<div style="{_CHILDREN}">{inside}</div></details>'


def _array(name: str, shown: Array) -> str:
    line = f"<b>{_text(name)}</b>: {escape(display.facts(shown))}"
    attributes = _attributes(shown, line)
    return attributes or line


def _attributes(shown: Group | Array, summary: str = "attributes") -> str:
    """The attributes behind a line that opens. Empty if there are none."""
    try:
        names = list(shown.attrs)
        rows = [f"{_text(name)} = {_value(shown, name)}" for name in names[:MOST_ATTRIBUTES]]
    except Exception as error:  # a repr never raises
        names, rows = [""], [_text(f"attributes cannot be read: {error}")]
    if not names:
        return ""
    rows += [f"… {len(names) - MOST_ATTRIBUTES} more"] if len(names) > MOST_ATTRIBUTES else []
    inside = "".join(f"<div>{row}</div>" for row in rows)
    return f'<details><summary>{summary}</summary><div style="{_CHILDREN}">{inside}</div></details>'


def _value(shown: Group | Array, name: str) -> str:
    try:
        said = printable(str(shown.attrs[name]))
    except Exception as error:  # one attribute does not hide the others
        said = f"({error})"
    return _text(said if len(said) <= MOST_LENGTH else f"{said[:MOST_LENGTH]}…")


def _text(said: str) -> str:
    return escape(printable(said))
