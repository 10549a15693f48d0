"""`hyperslab versions verify` checks that versions are what was committed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, name_of, opened
from hyperslab.errors import RunError

if TYPE_CHECKING:
    from hyperslab.versions.inspect.verify import Damage, Verification

MOST_LINES = 50


def verify(
    file: FileArgument,
    version: Annotated[list[str] | None, typer.Argument(help=VERSION_HELP + " Default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read and hash every chunk once, and compare everything else with the fingerprints that commits wrote.

    The exit status is 1 if anything is damaged.

    Example: hyperslab versions verify survey.h5
    """
    with opened(file) as versions, live(console(stderr=True), unit="chunks") as progress:
        names = [name_of(versions, said) for said in version or ()]
        found = versions.verify(*names, progress=progress)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "is_whole": found.is_whole}, indent=1))
    else:
        _print(found)
    if not found.is_whole:
        items = "item is" if found.damage_count == 1 else "items are"
        raise RunError(f"{file}: {found.damage_count} {items} damaged; try hyperslab versions repair")


def _print(found: Verification) -> None:
    from hyperslab.archive.views.display import nbytes

    out = console()
    for damage in found.damages[:MOST_LINES]:
        out.print(line(_line(damage)), soft_wrap=True)
    if found.damage_count > MOST_LINES:
        out.print(line(f"… {found.damage_count - MOST_LINES} more"))
    for array, reason in found.unchecked.items():
        out.print(line(f"not checked: {array}: {reason}"), soft_wrap=True)
    if found.uncommitted:
        names = ", ".join(found.uncommitted)
        out.print(line(f"never committed; the next program that writes to the file removes: {names}"), soft_wrap=True)
    if found.unproved:
        total = len(found.proved) + len(found.unproved)
        out.print(f"{len(found.proved)} of {total} versions are proved; only the elements of the others were checked:")
        for name, reason in list(found.unproved.items())[:MOST_LINES]:
            out.print(line(f"not proved: {name}: {reason}"), soft_wrap=True)
        if len(found.unproved) > MOST_LINES:
            out.print(line(f"… {len(found.unproved) - MOST_LINES} more"))
    counts = f"{found.version_count} versions, {found.chunk_count} chunks ({nbytes(found.nbytes)})"
    proved = "all as committed" if not found.unproved else "nothing is damaged, but not everything is proved"
    said = proved if found.is_whole else f"{found.damage_count} damaged"
    out.print(line(f"{found.path}: {counts}: {said}"), soft_wrap=True)


def _line(damage: Damage) -> str:
    index = f" at {damage.chunk_index}" if damage.chunk_index is not None else ""
    of = f"array {damage.array}{index}" if damage.array is not None else "the file"
    versions = f" in {', '.join(damage.versions)}" if damage.versions else ""
    return f"{of}{versions}: {damage.what}"
