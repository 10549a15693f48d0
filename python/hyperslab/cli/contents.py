"""What `hyperslab info` shows of an archive: its tree, how arrays are chunked and stored, and their attributes.

This module imports neither typer nor pydantic, which take longer to import than all that `info` does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from hyperslab.cli.archives import Entry, entries, message_of, open_archive, status_of
from hyperslab.cli.output import NotFinite, console, line, plain
from hyperslab.errors import HyperslabError, ReadError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from hyperslab.advise.results import Counsel
    from hyperslab.archive.tree.array import Array
    from hyperslab.archive.tree.group import Group

WIDTH_OF_FILES = 1000  # do not fold names and shapes in logs and pipes, so that people can search there
# What goes first if a terminal is too narrow: these columns, then names of dimensions and parts of long names, then
# the other columns, the stored size last.
DROPPED, DROPPED_LATER = ("mean chunk", "ratio", "chunks stored"), ("codecs", "in memory", "chunks", "stored")
LEAST_NAME, LEAST_CUT = 12, 5  # letters of a name that remain, with its branch of the tree and without it
MOST_ATTRIBUTES, MOST_ATTRIBUTE_LENGTH = 20, 120
COLUMNS = ("shape", "element", "chunks", "codecs", "in memory", "stored", "ratio", "chunks stored", "mean chunk")


def show(
    files: list[str],
    *,
    as_json: bool = False,
    every: bool = False,
    advise: bool = False,
    options: list[str] | None = None,
    allowed: list[str] | None = None,
    concat: str | None = None,
    trace: Path | None = None,
    store_profile: Path | None = None,
) -> None:
    """Print what the files contain. Of several files, those that cannot be opened do not keep the others from you."""
    if concat is not None and len(files) > 1:
        raise UsageError("--concat takes one pattern, in quotes: 'sst-*.nc'")
    told = _counsels(files if concat is None else [], trace, store_profile, options or [])
    documents, failures = [], 0
    for number, file in enumerate(files):
        try:
            with open_archive(file, options or [], concat, allowed) as root:
                rows = [describe(entry) for entry in entries(root)]
                rows = [{**row, **_said(told.get(row["name"]))} for row in rows]
                if as_json:
                    documents.append(_as_json(file, root, rows))
                else:
                    print("\n" * (number > 0), end="")
                    _print(file, root, rows, console(), advise=advise or "://" in file, every=every)
                    _print_counsels(told, console())
            if advise and concat is None:
                _audited(file, options or [], allowed, documents[-1] if as_json else None)
        except (UsageError, ReadError) as error:
            if len(files) == 1:
                raise
            failures += 1
            print(f"hyperslab: {error} [{error.code}]", file=sys.stderr)
    if as_json:
        print(json.dumps(documents[0] if len(files) == 1 else documents, indent=1))
    if failures:
        sys.exit(1)


def _counsels(
    files: list[str], trace: Path | None, store_profile: Path | None, options: list[str]
) -> dict[str, Counsel]:
    """What a traced program makes of each array of a file, and what helps it; nothing without a trace."""
    if trace is None:
        return {}
    if len(files) != 1:
        raise UsageError("--trace is about one file: name only that")
    from hyperslab.advise.asking import traced_counsels
    from hyperslab.cli.archives import storage_options
    from hyperslab.model.store_profile import profile_if_any

    return traced_counsels(files[0], trace, profile_if_any(store_profile), storage_options(options))


def _audited(file: str, options: list[str], allowed: list[str] | None, document: dict[str, Any] | None) -> None:
    """What `hyperslab audit` says of a file: printed, or put into its document."""
    from hyperslab.audit.judging import Question, audit_file
    from hyperslab.audit.words import file_lines
    from hyperslab.cli.archives import allowed_prefixes, storage_options

    question = Question(options=storage_options(options), allowed=allowed_prefixes(allowed))
    audit = audit_file(file, question)
    if document is not None:
        document["audit"] = audit.to_dict()
        return
    for said in file_lines(audit, question.distance):
        console().print(line(said), soft_wrap=True)


def _said(counsel: Counsel | None) -> dict[str, Any]:
    return {} if counsel is None else {"counsel": counsel.to_dict()}


def _print_counsels(told: dict[str, Counsel], out: Console) -> None:
    if told:
        from hyperslab.report.trace_words import counsel_lines

        for name, counsel in told.items():
            first, *others = counsel_lines(counsel)
            out.print(line(f"{name}: {first}"), soft_wrap=True)
            for said in others:
                out.print(line(said), soft_wrap=True)


def describe(entry: Entry) -> dict[str, Any]:
    """One row for a name in the archive: a group, an array with its facts, or the problem with it."""
    from hyperslab.archive.tree.array import Array

    row: dict[str, Any] = {"name": entry.path, "branch": entry.branch}
    try:
        if isinstance(entry.found, Array):
            return {**row, "kind": "array", **facts(entry.found), "attributes": attributes_of(entry.found)}
    except (HyperslabError, OSError) as error:
        return {**row, "kind": status_of(error), "problem": message_of(error)}
    if isinstance(entry.found, Exception):
        return {**row, "kind": status_of(entry.found), "problem": message_of(entry.found)}
    shown = {} if entry.is_again else attributes_of(entry.found)
    return {**row, "kind": "group", "again": entry.is_again, "attributes": shown}


def attributes_of(named: Group | Array) -> dict[str, Any]:
    """The attributes of a group or an array as JSON expresses them; a problem takes the place of a value."""
    made = {}
    for name in named.attrs:
        try:
            made[name] = plain(named.attrs[name])
        except (HyperslabError, OSError) as error:
            made[name] = f"({message_of(error)})"
    return made


def facts(array: Array) -> dict[str, Any]:
    """Shape, element, chunks, codecs, sizes and advice of an array."""
    count, stored_count, stored_nbytes = array.chunk_count, array.stored_chunk_count, array.stored_nbytes
    element, nbytes = _element(array)
    known = {
        "shape": None if array.is_null else list(array.shape),
        "dims": None if array.dims is None else list(array.dims),
        "is_dimension_only": array.is_dimension_only,
        "element": element,
        "chunks": None if array.chunks is None else list(array.chunks),
        "chunk_nbytes": _chunk_nbytes(array, element),
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
    return {**known, "advice": [*problems(known), *advice(known)]}


def _chunk_nbytes(array: Array, element: str | None) -> int | None:
    """The size of a chunk in memory."""
    if array.chunks is None or element is None:
        return None
    return prod(array.chunks) * array.dtype.itemsize


def _element(array: Array) -> tuple[str | None, int | None]:
    """The dtype in words and the size in memory; None for an array that neither hyperslab nor h5py can read."""
    from hyperslab.archive.views import display

    if array.unsupported and array.via == "hyperslab":
        return None, None
    try:
        return display.element(array.dtype), array.nbytes
    except HyperslabError:
        raise
    except OSError:  # h5py, which should read the array, cannot open the file
        return None, None


def problems(known: dict[str, Any]) -> Iterator[str]:
    """What keeps an array from being read, or from being read fast."""
    if known["damaged"]:
        yield f"damaged: {known['damaged']}"
    if known["unsupported"]:
        how = "hyperslab reads it through h5py, with one thread" if known["via"] == "h5py" else "it cannot be read"
        yield f"unsupported: {known['unsupported']}; {how}"


def advice(known: dict[str, Any]) -> Iterator[str]:
    """What a user should know before reading the array from a cloud."""
    from hyperslab.advise.cloud import cloud_tips

    if known["chunks"] is not None:
        tips = cloud_tips(known["stored_chunk_count"], known["stored_nbytes"], known["chunk_nbytes"])
        yield from (tip.what for tip in tips)


def _size(count: float | None) -> str:
    from hyperslab.quantities import nbytes_text

    return nbytes_text(count)


def _as_json(file: str, root: Group, rows: list[dict[str, Any]]) -> dict[str, Any]:
    plain = [{key: value for key, value in row.items() if key not in ("branch", "again")} for row in rows]
    said = {"array": "arrays", "group": "groups"}
    document: dict[str, Any] = {
        "file": str(file),
        "format": root.format,
        "attributes": attributes_of(root),
        "lost_nbytes": root.lost_nbytes,
        "arrays": [],
        "groups": [],
        "problems": [],
    }
    for row, again in zip(plain, (row.get("again") for row in rows), strict=True):
        if not again:
            document[said.get(row["kind"], "problems")].append(row)
    return document


def _print(
    file: str, root: Group, rows: list[dict[str, Any]], out: Console, *, advise: bool = True, every: bool = False
) -> None:
    from hyperslab.archive.views import display

    both = [row for row in rows if row["kind"] == "array"]
    arrays = [row for row in both if not row["is_dimension_only"]]
    stored = [row["stored_nbytes"] for row in arrays]
    size = "unknown size" if None in stored else _size(sum(stored))
    count = display.counted(len(arrays), "array", "arrays")
    if len(both) > len(arrays):
        count += f", {display.counted(len(both) - len(arrays), 'dimension', 'dimensions')} without coordinates"
    out.print(line(f"{file}: {root.format}, {count}, {size} in chunks"), soft_wrap=True)
    if root.lost_nbytes:
        from hyperslab.archive.tree.whole import lost

        out.print(line(lost(root)), soft_wrap=True)
    if not out.is_terminal:
        out.width = WIDTH_OF_FILES
    if rows:
        out.print(_table(rows, out))
    for said in _attribute_lines([{"name": "", "attributes": attributes_of(root)}, *rows], out, every=every):
        out.print(line(said), soft_wrap=True)
    for row in rows:
        notes = [row["problem"]] if "problem" in row else []
        if row["kind"] == "array":
            notes = [*problems(row), *(advice(row) if advise else ())]
        for one in notes:
            out.print(line(f"{row['name']}: {one}"), soft_wrap=True)


def _table(rows: list[dict[str, Any]], out: Console) -> Table:
    """The table with as much as fits the terminal."""
    dropped = [DROPPED[:count] for count in range(len(DROPPED) + 1)]
    for left_out in dropped:
        if _width(table := _columns(rows, left_out), out) <= out.width:
            return table
    for count in range(len(DROPPED_LATER) + 1):
        left_out = (*DROPPED, *DROPPED_LATER[:count])
        cut = [{**row, "dims": None} for row in rows]
        longest = max(len(_line(row)[0]) for row in rows)
        excess = _width(_columns(cut, left_out), out) - out.width
        table = _columns(cut, left_out, max(LEAST_NAME, longest - max(excess, 0)))
        if _width(table, out) <= out.width:
            break
    return table


def _width(table: Table, out: Console) -> int:
    return out.measure(table, options=out.options.update(width=WIDTH_OF_FILES)).maximum


def _columns(rows: list[dict[str, Any]], left_out: tuple[str, ...], most: int = WIDTH_OF_FILES) -> Table:
    """The table without some columns, and with names that have at most so many letters."""
    from rich.table import Table

    shown = [column for column in COLUMNS if column not in left_out]
    table = Table("name", box=None)
    for column in shown:
        table.add_column(column, overflow="fold", no_wrap=column in ("chunks", "codecs", "in memory", "stored"))
    for row in rows:
        name, *cells = _line(row)
        named = dict(zip(COLUMNS, cells, strict=False))
        table.add_row(
            line(_cut(name, len(row["branch"]), most)), *(line(named[column]) for column in shown if column in named)
        )
    return table


def _cut(name: str, branch: int, most: int) -> str:
    """A name without its middle, if it is too long with its branch of the tree: names often differ at their ends."""
    room = max(most - branch, LEAST_CUT)
    if len(name) - branch <= room:
        return name
    end = room // 2
    return f"{name[: branch + room - 1 - end]}…{name[len(name) - end :]}"


def _attribute_lines(rows: list[dict[str, Any]], out: Console, *, every: bool) -> Iterator[str]:
    """Attributes as `ncdump -h` writes them: `sst:units = "K"`."""
    attributes = [
        f"{row['name'].lstrip('/')}:{name} = {_value(value)}"
        for row in rows
        for name, value in row.get("attributes", {}).items()
    ]
    most = len(attributes) if every else MOST_ATTRIBUTES
    width = out.width if out.is_terminal else MOST_ATTRIBUTE_LENGTH
    for said in attributes[:most]:
        yield said if every or len(said) <= width else f"{said[: width - 1]}…"
    if len(attributes) > most:
        yield f"… {len(attributes) - most} more attributes: -v shows all of them"


def _value(value: Any) -> str:
    """A value as JSON writes it; an array without brackets, and a number that is not finite without quotes."""
    if isinstance(value, list):
        return ", ".join(map(_value, value)) if value else "[]"
    return str(value) if isinstance(value, NotFinite) else json.dumps(value, ensure_ascii=False)


def _line(row: dict[str, Any]) -> list[str]:
    name = row["branch"] + row["name"].rsplit("/", 1)[-1]
    if row["kind"] == "group":
        return [name + "/" + (" (again)" if row["again"] else "")]
    if row["kind"] != "array":
        return [f"{name}: {row['kind']}"]
    if row["is_dimension_only"]:
        return [name, f"a dimension of length {row['shape'][0]:,}"]
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
