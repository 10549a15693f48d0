"""`hyperslab versions diff` shows what differs between two versions, and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hyperslab.cli.output import console, line, plain
from hyperslab.cli.progress import live
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, name_of, opened
from hyperslab.errors import UsageError
from hyperslab.meant import meant
from hyperslab.needed import need

if TYPE_CHECKING:
    from hyperslab.versions.inspect.diff import ArrayDiff, Change, VersionDiff

MOST_BOXES = 4  # in the table
MOST_LISTED_CHUNKS = 100_000  # in JSON


def diff(
    file: FileArgument,
    before: Annotated[str, typer.Argument(help=VERSION_HELP)],
    after: Annotated[str | None, typer.Argument(help="The other version (default: the current one).")] = None,
    array: Annotated[list[str] | None, typer.Option("--array", help="Compare only this array. Repeatable.")] = None,
    elements: Annotated[
        bool, typer.Option("--elements", help="Read the chunks that differ, and show which elements differ.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw where 1-D and 2-D arrays changed, as .png or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the arrays, shapes and attributes of two versions, and list the chunks that differ without reading any.

    Example: hyperslab versions diff survey.h5 march april --elements --figure april.png
    """
    if figure is not None:
        need("--figure", "matplotlib")
    with opened(file) as versions:
        difference = versions.diff(name_of(versions, before), name_of(versions, after))
        for path in array or ():
            if all(path not in versions[name] for name in (difference.before, difference.after)):
                near = meant(path, difference.arrays)
                raise UsageError(f"there is no array {path!r} in {difference.before} or {difference.after}{near}")
        if array:
            difference = replace(
                difference, arrays={path: one for path, one in difference.arrays.items() if path in array}
            )
        if elements or figure is not None:
            with live(console(stderr=True), unit="chunks") as progress:
                for one in difference.arrays.values():
                    if one.problem is None:
                        one.elements(progress)
        not_drawn = _draw(difference, figure) if figure is not None else []
    if as_json:
        typer.echo(json.dumps({"file": file, **_as_json(difference, elements)}, indent=1))
    else:
        _print(difference, elements)
        if figure is not None:
            more = f"; not drawn: {', '.join(not_drawn)}" if not_drawn else ""
            console().print(line(f"figure: {figure}{more}"), soft_wrap=True)


def _draw(difference: VersionDiff, target: Path) -> list[str]:
    from hyperslab.report.version_figures import draw_difference

    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {target.absolute().parent} to write {target.name} to: create it first")
    return draw_difference(difference, target)


def _as_json(difference: VersionDiff, with_elements: bool) -> dict[str, Any]:
    return {
        "before": difference.before,
        "after": difference.after,
        "arrays": [_array_as_json(array, with_elements) for array in difference.arrays.values()],
        "added_groups": difference.added_groups,
        "removed_groups": difference.removed_groups,
        "attributes": {
            path: {name: plain(change) for name, change in changes.items()}
            for path, changes in difference.attributes.items()
        },
        "problems": difference.problems,
    }


def _array_as_json(array: ArrayDiff, with_elements: bool) -> dict[str, Any]:
    few = array.chunks is not None and len(array.chunks) <= MOST_LISTED_CHUNKS
    said: dict[str, Any] = {
        "array": array.path,
        "status": array.status,
        "shape": plain(array.shape),
        "dtype": [None if dtype is None else str(dtype) for dtype in array.dtype],
        "attributes": {name: plain(change) for name, change in array.attributes.items()},
        "chunk_shape": list(array.chunk_shape),
        "chunk_count": array.chunk_count,
        "chunks": plain(array.chunks) if few else None,
        "problem": array.problem,
    }
    if with_elements and array.problem is None:
        elements = array.elements()
        said["elements"] = {
            "count": elements.count,
            "added_count": elements.added_count,
            "removed_count": elements.removed_count,
            "boxes": elements.boxes.tolist() if len(elements.boxes) <= MOST_LISTED_CHUNKS else None,
            "bounds": plain(elements.bounds),
            "values": plain(elements.values),
        }
    return said


def _print(difference: VersionDiff, with_elements: bool) -> None:
    out = console()
    if difference.is_empty:
        out.print(line(f"{difference.before} and {difference.after} are the same"), soft_wrap=True)
        return
    columns = ["array", "what", "shape", "chunks that differ", "attributes"]
    table = Table(*columns, *(["elements that differ", "where"] if with_elements else []), box=None)
    for array in difference.arrays.values():
        table.add_row(*(line(cell, overflow="fold") for cell in _cells(array, with_elements)))
    if difference.arrays:
        out.print(table)
    for name, groups in (("new", difference.added_groups), ("gone", difference.removed_groups)):
        if groups:
            out.print(line(f"{name} groups: {', '.join(groups)}"), soft_wrap=True)
    for path, changes in difference.attributes.items():
        out.print(line(f"attributes of {path or 'the version'}: {_changes(changes)}"), soft_wrap=True)
    for path, problem in difference.problems.items():
        out.print(line(f"{path}: {problem}"), soft_wrap=True)


def _changes(attributes: Mapping[str, Change]) -> str:
    return ", ".join(
        f"{name}: {' → '.join('–' if value is None else str(value) for value in change)}"
        for name, change in attributes.items()
    )


def _cells(array: ArrayDiff, with_elements: bool) -> list[str]:
    shapes = ["×".join(map(str, shape)) for shape in array.shape if shape is not None]
    chunks = f"not known: {array.problem}" if array.problem else f"{array.chunk_count:,}"
    cells = [array.path, array.status, " → ".join(dict.fromkeys(shapes)), chunks, _changes(array.attributes)]
    if not with_elements:
        return cells
    if array.problem:
        return [*cells, "?", "?"]
    element_diff = array.elements()
    counts = [f"{element_diff.count:,}"]
    counts += [f"{element_diff.added_count:,} new"] if element_diff.added_count else []
    counts += [f"{element_diff.removed_count:,} gone"] if element_diff.removed_count else []
    boxes = [", ".join(f"{start}:{stop}" for start, stop in box) for box in element_diff.boxes[:MOST_BOXES].tolist()]
    more = f" and {len(element_diff.boxes) - MOST_BOXES:,} more" if len(element_diff.boxes) > MOST_BOXES else ""
    return [*cells, ", ".join(counts), " ".join(f"[{box}]" for box in boxes) + more]
