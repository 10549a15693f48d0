"""`hyperslab versions verify` checks that versions are what was committed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.arguments import Options
from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, name_of, opened
from hyperslab.errors import RunError, UsageError

if TYPE_CHECKING:
    from hyperslab.versions.inspect.verify import Damage, Verification

MOST_LINES = 50


def verify(
    file: Annotated[str, typer.Argument(help="A file with versions, or the URL of a folder that they were pushed to.")],
    version: Annotated[list[str] | None, typer.Argument(help=VERSION_HELP + " (default: all)")] = None,
    option: Options = None,
    as_json: AsJson = False,
) -> None:
    """Read and hash every chunk once, and compare everything else with the fingerprints that commits wrote.

    At a URL, every bundle is fetched and hashed, and everything that one names must be there.

    The exit status is 1 if anything is damaged.

    Example: hyperslab versions verify survey.h5

    Example: hyperslab versions verify s3://bucket/survey
    """
    from hyperslab.archive.far.remote import is_url

    if is_url(file):
        _verify_folder(file, version, option or [], as_json=as_json)
        return
    with opened(file) as versions, live(console(stderr=True), unit="chunks") as progress:
        names = [name_of(versions, said) for said in version or ()]
        verification = versions.verify(*names, progress=progress)
    if as_json:
        typer.echo(json.dumps({**asdict(verification), "is_whole": verification.is_whole}, indent=1))
    else:
        _print(verification)
    if not verification.is_whole:
        items = "item is" if verification.damage_count == 1 else "items are"
        raise RunError(f"{file}: {verification.damage_count} {items} damaged; try hyperslab versions repair")


def _verify_folder(url: str, version: list[str] | None, options: list[str], *, as_json: bool) -> None:
    from hyperslab.archive.views.display import counted
    from hyperslab.cli.archives import storage_options
    from hyperslab.quantities import nbytes_text
    from hyperslab.versions import verify_folder

    if version:
        raise UsageError("at a URL all versions are verified: leave their names out")
    with live(console(stderr=True), unit="bundles") as progress:
        found = verify_folder(url, storage_options=storage_options(options), progress=progress)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "is_whole": found.is_whole}, indent=1))
    else:
        out = console()
        for damage in found.damages[:MOST_LINES]:
            out.print(line(damage), soft_wrap=True)
        bundles = counted(found.bundle_count, "bundle", "bundles")
        held = f"{counted(found.version_count, 'version', 'versions')} in {bundles}"
        said = "all as pushed" if found.is_whole else f"{len(found.damages)} damaged"
        out.print(line(f"{found.url}: {held} ({nbytes_text(found.nbytes)}): {said}"), soft_wrap=True)
    if not found.is_whole:
        raise RunError(f"{found.url}: not everything is as it was pushed; push the versions to another URL")


def _print(verification: Verification) -> None:
    from hyperslab.quantities import nbytes_text

    out = console()
    for damage in verification.damages[:MOST_LINES]:
        out.print(line(_line(damage)), soft_wrap=True)
    if verification.damage_count > MOST_LINES:
        out.print(line(f"… {verification.damage_count - MOST_LINES} more"))
    for array, reason in verification.unchecked.items():
        out.print(line(f"not checked: {array}: {reason}"), soft_wrap=True)
    for name, problem in verification.refs.items():
        out.print(line(f"{name} is {problem}"), soft_wrap=True)
    if verification.uncommitted:
        names = ", ".join(verification.uncommitted)
        out.print(line(f"never committed; the next program that writes to the file removes: {names}"), soft_wrap=True)
    if verification.unproved:
        total = len(verification.proved) + len(verification.unproved)
        out.print(
            f"{len(verification.proved)} of {total} versions are proved; only the elements of the others were checked:"
        )
        for name, reason in list(verification.unproved.items())[:MOST_LINES]:
            out.print(line(f"not proved: {name}: {reason}"), soft_wrap=True)
        if len(verification.unproved) > MOST_LINES:
            out.print(line(f"… {len(verification.unproved) - MOST_LINES} more"))
    counts = (
        f"{verification.version_count} versions, {verification.chunk_count} chunks ({nbytes_text(verification.nbytes)})"
    )
    proved = "all as committed" if not verification.unproved else "nothing is damaged, but not everything is proved"
    said = proved if verification.is_whole else f"{verification.damage_count} damaged"
    out.print(line(f"{verification.path}: {counts}: {said}"), soft_wrap=True)


def _line(damage: Damage) -> str:
    index = f" at {damage.chunk_index}" if damage.chunk_index is not None else ""
    of = f"array {damage.array}{index}" if damage.array is not None else "the file"
    versions = f" in {', '.join(damage.versions)}" if damage.versions else ""
    return f"{of}{versions}: {damage.what}"
