"""`hyperslab info` shows what an archive contains, how it is chunked and stored, and whether that suits the cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hyperslab.cli.archives import (
    Allowed,
    Concat,
    Entry,
    FileArgument,
    Options,
    entries,
    lost,
    message_of,
    open_archive,
    status_of,
)
from hyperslab.cli.output import console, line
from hyperslab.errors import HyperslabError

if TYPE_CHECKING:
    from hyperslab.archive.array import Array
    from hyperslab.archive.tree import Group

# In stored bytes. For smaller chunks, latency costs more than transfer; for larger ones, a worker waits long and needs
# much memory.
LEAST_CHUNK_NBYTES, MOST_CHUNK_NBYTES = 1 << 20, 100 << 20
WIDTH_OF_FILES = 1000  # do not fold names and shapes in logs and pipes, so that people can search there
COLUMNS = ("shape", "element", "chunks", "codecs", "in memory", "stored", "ratio", "chunks stored", "mean chunk")


def info(
    file: FileArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    option: Options = None,
    allowed: Allowed = None,
    concat: Concat = None,
) -> None:
    """Show the content of a file: groups, arrays, chunks, codecs, sizes, and advice for reading it from a cloud.

    Example: hyperslab info ocean.nc
    """
    with open_archive(file, option or [], concat, allowed) as root:
        rows = [describe(entry) for entry in entries(root)]
        if as_json:
            typer.echo(json.dumps(_as_json(file, root, rows), indent=1))
        else:
            _print(file, root, rows, console())


def describe(entry: Entry) -> dict[str, Any]:
    """One row for a name in the archive: a group, an array with its facts, or the problem with it."""
    from hyperslab.archive.array import Array

    row: dict[str, Any] = {"name": entry.path, "branch": entry.branch}
    try:
        if isinstance(entry.found, Array):
            return {**row, "kind": "array", **facts(entry.found)}
    except (HyperslabError, OSError) as error:
        return {**row, "kind": status_of(error), "problem": message_of(error)}
    if isinstance(entry.found, Exception):
        return {**row, "kind": status_of(entry.found), "problem": message_of(entry.found)}
    return {**row, "kind": "group", "again": entry.is_again}


def facts(array: Array) -> dict[str, Any]:
    """Shape, element, chunks, codecs, sizes and advice of an array."""
    count, stored_count, stored_nbytes = array.chunk_count, array.stored_chunk_count, array.stored_nbytes
    element, nbytes = _element(array)
    found = {
        "shape": None if array.is_null else list(array.shape),
        "dims": None if array.dims is None else list(array.dims),
        "element": element,
        "chunks": None if array.chunks is None else list(array.chunks),
        "codecs": list(array.codecs),
        "nbytes": nbytes,
        "stored_nbytes": stored_nbytes,
        "ratio": nbytes / stored_nbytes if nbytes and stored_nbytes else None,
        "chunk_count": count,
        "stored_chunk_count": stored_count,
        "missing_chunk_count": None if stored_count is None else count - stored_count,
        "mean_stored_chunk_nbytes": stored_nbytes / stored_count if stored_nbytes and stored_count else None,
        "via": array.via,
        "unsupported": array.unsupported,
        "damaged": array.damaged,
    }
    return {**found, "advice": list(advice(found))}


def _element(array: Array) -> tuple[str | None, int | None]:
    """The dtype in words and the size in memory; None for an array that neither hyperslab nor h5py can read."""
    from hyperslab.archive import display

    if array.unsupported and array.via == "hyperslab":
        return None, None
    try:
        return display.element(array), array.nbytes
    except HyperslabError:
        raise
    except OSError:  # h5py, which should read the array, cannot open the file
        return None, None


def advice(found: dict[str, Any]) -> Iterator[str]:
    """What a user should know before reading the array, especially from a cloud."""
    if found["damaged"]:
        yield f"damaged: {found['damaged']}"
    if found["unsupported"]:
        how = "hyperslab reads it through h5py, with one thread" if found["via"] == "h5py" else "it cannot be read"
        yield f"unsupported: {found['unsupported']}; {how}"
    mean, count = found["mean_stored_chunk_nbytes"], found["stored_chunk_count"]
    if found["chunks"] is None or mean is None:
        return
    if mean < LEAST_CHUNK_NBYTES and count > 1:
        said = f"{count} stored chunks of {_size(mean)} on average are too small for reading from a cloud"
        yield f"{said}: {_larger(found)}"
    if mean > MOST_CHUNK_NBYTES:
        said = f"stored chunks of {_size(mean)} on average are too large for reading from a cloud"
        times = f"{mean / MOST_CHUNK_NBYTES * 10:.0f}"
        yield f"{said}: reading any part of a chunk fetches the whole chunk; make them about {times} times smaller"


def _larger(found: dict[str, Any]) -> str:
    if found["stored_nbytes"] < LEAST_CHUNK_NBYTES:
        return "one chunk would hold them all"
    times = LEAST_CHUNK_NBYTES * 10 / found["mean_stored_chunk_nbytes"]
    return f"make them about {min(times, found['stored_chunk_count']):.0f} times larger (1 to 100 MiB stored)"


def _size(count: float | None) -> str:
    from hyperslab.archive import display

    return "–" if count is None else display.nbytes(count)


def _as_json(file: str, root: Group, rows: list[dict[str, Any]]) -> dict[str, Any]:
    plain = [{key: value for key, value in row.items() if key not in ("branch", "again")} for row in rows]
    said = {"array": "arrays", "group": "groups"}
    found: dict[str, Any] = {
        "file": str(file),
        "format": root.format,
        "lost_nbytes": root.lost_nbytes,
        "arrays": [],
        "groups": [],
        "problems": [],
    }
    for row, again in zip(plain, (row.get("again") for row in rows), strict=True):
        if not again:
            found[said.get(row["kind"], "problems")].append(row)
    return found


def _print(file: str, root: Group, rows: list[dict[str, Any]], out: Console) -> None:
    arrays = [row for row in rows if row["kind"] == "array"]
    stored = [row["stored_nbytes"] for row in arrays]
    size = "unknown size" if None in stored else _size(sum(stored))
    out.print(line(f"{file}: {root.format}, {len(arrays)} arrays, {size} in chunks"), soft_wrap=True)
    if root.lost_nbytes:
        out.print(line(lost(root)), soft_wrap=True)
    table = Table("name", box=None)
    for column in COLUMNS:
        table.add_column(column, overflow="fold", no_wrap=column in ("chunks", "codecs"))
    for row in rows:
        table.add_row(*(line(cell) for cell in _line(row)))
    if not out.is_terminal:
        out.width = WIDTH_OF_FILES
    if rows:
        out.print(table)
    for row in rows:
        for said in row.get("advice", [row["problem"]] if "problem" in row else []):
            out.print(line(f"{row['name']}: {said}"), soft_wrap=True)


def _line(row: dict[str, Any]) -> list[str]:
    name = row["branch"] + row["name"].rsplit("/", 1)[-1]
    if row["kind"] == "group":
        return [name + "/" + (" (again)" if row["again"] else "")]
    if row["kind"] != "array":
        return [f"{name}: {row['kind']}"]
    missing = f" of {row['chunk_count']}" if row["missing_chunk_count"] else ""
    return [
        name,
        _shape(row),
        row["element"] or "?",
        "×".join(map(str, row["chunks"])) if row["chunks"] else "–",
        "+".join(row["codecs"]) or "–",
        _size(row["nbytes"]),
        _size(row["stored_nbytes"]),
        f"{row['ratio']:.3g}" if row["ratio"] else "–",
        "–" if row["stored_chunk_count"] is None else f"{row['stored_chunk_count']}{missing}",
        _size(row["mean_stored_chunk_nbytes"]),
    ]


def _shape(row: dict[str, Any]) -> str:
    if row["shape"] is None:
        return "empty"
    if row["dims"] and len(row["dims"]) == len(row["shape"]):
        return "(" + ", ".join(f"{name}: {n}" for name, n in zip(row["dims"], row["shape"], strict=True)) + ")"
    return str(tuple(row["shape"]))
