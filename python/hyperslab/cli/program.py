"""The program `hyperslab` for typer: its commands and the options that it has itself."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer

import hyperslab
from hyperslab.cli.commands import Commands
from hyperslab.errors import UsageError

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


# typer has a copy of click from 0.20 on, and uses click itself before.
_WrongLine: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")


def run() -> None:
    """Run the command that the command line names. What is wrong with the command line is said in one line."""
    try:
        status = app(standalone_mode=False)
    except typer.Abort:
        sys.exit("hyperslab: nothing was done, since you did not agree")
    except _WrongLine as error:
        wrong: Any = error
        context: Any = getattr(wrong, "ctx", None)
        if context is not None and type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(context.get_help(), err=True)
            sys.exit(2)
        hint = "" if context is None else f"; {context.command_path} --help says what there is"
        raise UsageError(_in_our_words(wrong.format_message()) + hint) from error
    if isinstance(status, int):
        sys.exit(status)


def _in_our_words(said: str) -> str:
    """Typer's message as one line that may go on."""
    said = " ".join(said.split()).replace("Value error, ", "")
    said = re.sub(r"\.? \(?(?:Did you mean|Possible options:) (.+?)[?)]*$", r"; did you mean \1?", said)
    return said[:1].lower() + said[1:].rstrip(".")
