"""The program `hyperslab` for typer: its commands and the options that it has itself."""

from __future__ import annotations

import typer

import hyperslab
from hyperslab.cli.commands import Commands

app = typer.Typer(
    cls=Commands,
    help="Predict how fast your array I/O will be, and make it fast.",
    no_args_is_help=True,
    add_completion=False,  # `hyperslab completion` is ours: it knows the arrays of files
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hyperslab {hyperslab.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None: ...
