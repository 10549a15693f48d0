"""`hyperslab versions delete` deletes versions and the chunks that only they use."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, Timeout, name_of, opened
from hyperslab.errors import UsageError


def delete(
    file: FileArgument,
    version: Annotated[list[str], typer.Argument(help=VERSION_HELP)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    repack: Annotated[
        bool, typer.Option("--repack/--no-repack", help="Rewrite the whole file, or only append what is needed.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Delete versions that have tags, too.")] = False,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Delete versions: all of them or, if that fails, none. Their children become children of their parents.

    Example: hyperslab versions delete survey.h5 march --yes
    """
    before, names = Path(file).stat().st_size if Path(file).is_file() else 0, list[str]()
    try:
        with as_signalled(), opened(file, "r+", timeout) as versions:
            names += dict.fromkeys(name_of(versions, said) for said in version)
            if not yes:
                _ask(file, names, len(versions))
            with live(console(stderr=True), unit="parts") as progress:
                versions.delete_versions(names, repack=repack, force=force, progress=progress)
            left = versions.versions
    except (KeyboardInterrupt, SystemExit):  # all or none were deleted: say which
        with opened(file) as versions:
            gone = [name for name in names if name not in versions]
        console(stderr=True).print(line(f"{file}: {', '.join(gone) or 'nothing'} deleted"), soft_wrap=True)
        raise
    after = Path(file).stat().st_size
    if as_json:
        deletion = {"file": file, "deleted": names, "versions": left, "nbytes_before": before, "nbytes": after}
        typer.echo(json.dumps(deletion, indent=1))
        return
    from hyperslab.quantities import nbytes_text

    sizes = f"{nbytes_text(before)} → {nbytes_text(after)}"
    said = f"{file}: {', '.join(names)} deleted, {len(left)} versions are left, {sizes}"
    console().print(line(said), soft_wrap=True)


def _ask(file: str, names: list[str], count: int) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{len(names)} of {count} versions of {file} would be deleted for good: confirm with --yes")
    if not typer.confirm(f"Delete {', '.join(names)}, {len(names)} of {count} versions of {file}, for good?"):
        raise UsageError("nothing was deleted")
