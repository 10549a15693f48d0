"""`hyperslab versions repack` writes a file with versions again, as short as possible."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, FileArgument, Timeout, opened


def repack(file: FileArgument, timeout: Timeout = 1.0, as_json: AsJson = False) -> None:
    """Write a file again without unused space. All versions stay; there must be room for both files.

    Example: hyperslab versions repack survey.h5
    """
    before = Path(file).stat().st_size if Path(file).is_file() else 0
    with as_signalled(), opened(file, "r+", timeout) as versions, live(console(stderr=True), unit="parts") as progress:
        versions.repack(progress=progress)
    after = Path(file).stat().st_size
    if as_json:
        typer.echo(json.dumps({"file": file, "nbytes_before": before, "nbytes": after}, indent=1))
        return
    from hyperslab.quantities import nbytes_text

    console().print(line(f"{file}: {nbytes_text(before)} → {nbytes_text(after)}"), soft_wrap=True)
