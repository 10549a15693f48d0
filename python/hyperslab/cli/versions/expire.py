"""`hyperslab versions expire` deletes versions by their age and number."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, FileArgument, Timeout, opened, refused
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.versions.rewrite.expiry import Expiry

SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
MOST_NAMED = 12


def expire(
    file: FileArgument,
    keep_last: Annotated[
        int | None, typer.Option("--keep-last", min=1, help="Keep this many of the last versions of each branch.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Keep versions that are younger than this, such as 12h, 90d, 8w or 1y."),
    ] = None,
    thin: Annotated[
        str | None,
        typer.Option(
            "--thin", help="Keep this many of the last versions of each period: 1/hour, 1/day, 2/week, 1/month, 1/year."
        ),
    ] = None,
    keep_tags: Annotated[
        bool, typer.Option("--keep-tags/--drop-tagged", help="Whether to keep versions that have tags.")
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show which versions would be deleted, and how many bytes only they use."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    repack: Annotated[
        bool, typer.Option("--repack/--no-repack", help="Rewrite the whole file, or only append what is needed.")
    ] = True,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Delete versions by their age and number: all of them or, if that fails, none.

    A version goes if every option that you give lets it go. Heads of branches and the current version always stay.

    Example: hyperslab versions expire survey.h5 --keep-last 20 --older-than 90d --thin 1/day --dry-run
    """
    rule = {"keep_last": keep_last, "older_than": _age(older_than), "thin": thin, "keep_tags": keep_tags}
    before = Path(file).stat().st_size if Path(file).is_file() else 0
    with opened(file) as versions, refused(), live(console(stderr=True), unit="versions") as progress:
        found = versions.expire(**rule, dry_run=True, progress=progress)  # type: ignore[arg-type]
        count = len(versions)
    if not dry_run and found.names:
        if not yes:
            _ask(found, count)
        with as_signalled(), opened(file, "r+", timeout) as versions, refused():
            now = versions.expire(**rule, dry_run=True, now=found.time)  # type: ignore[arg-type]
            if set(now.names) != set(found.names):
                raise UsageError(f"{file} changed meanwhile, so other versions would go: look again")
            with live(console(stderr=True), unit="parts") as progress:
                versions.delete_versions(found.names, repack=repack, force=not keep_tags, progress=progress)
    after = Path(file).stat().st_size
    if as_json:
        said = {"file": file, "dry_run": dry_run, "expired": list(found.names), "kept": dict(found.kept)}
        sizes = {"chunk_count": found.chunk_count, "nbytes": found.nbytes, "unused_nbytes": found.unused_nbytes}
        typer.echo(json.dumps({**said, **sizes, "nbytes_before": before, "nbytes_after": after}, indent=1))
        return
    _print(file, found, count, (before, after), dry_run=dry_run)


def _print(file: str, found: Expiry, count: int, sizes: tuple[int, int], *, dry_run: bool) -> None:
    from hyperslab.quantities import nbytes_text

    verb = "would go" if dry_run else "expired"
    text = f"{file}: {len(found.names)} of {count} versions {verb}: {_named(found.names)}"
    out = console()
    out.print(line(text if found.names else f"{file}: none of {count} versions is to go"), soft_wrap=True)
    if found.names:
        only = f"only these use {nbytes_text(found.nbytes)} in {found.chunk_count:,} chunks"
        unused = f", and no version uses {nbytes_text(found.unused_nbytes)}" if found.unused_nbytes else ""
        size = "" if dry_run else f"; the file: {nbytes_text(sizes[0])} → {nbytes_text(sizes[1])}"
        out.print(line(f"{only}{unused}{size}"), soft_wrap=True)
    for path, problem in found.problems.items():
        out.print(line(f"not counted: {path}: {problem}"), soft_wrap=True)


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _ask(found: Expiry, count: int) -> None:
    said = f"{len(found.names)} of {count} versions of {found.path}"
    if not sys.stdin.isatty():
        raise UsageError(f"{said} would be deleted for good: look with --dry-run, and confirm with --yes")
    if not typer.confirm(f"Delete {_named(found.names)}, {said}, for good?"):
        raise UsageError("nothing was deleted")


def _age(said: str | None) -> dt.timedelta | None:
    if said is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})([hdwy])", said)
    if match is None:
        raise UsageError(f"--older-than {said} is no age: use hours, days, weeks or years, as in 12h, 90d, 8w, 1y")
    return dt.timedelta(seconds=int(match[1]) * SECONDS[match[2]])
