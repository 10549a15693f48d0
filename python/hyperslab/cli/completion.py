"""`hyperslab completion` prints the script with which a shell completes our commands."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hyperslab.cli.completing import SCRIPTS

Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.")]) -> None:
    """Print a script that lets your shell complete commands, options, arrays of files, and studies.

    Example: eval "$(hyperslab completion bash)"
    """
    typer.echo(SCRIPTS[shell], nl=False)
