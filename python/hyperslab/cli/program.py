"""The program `hyperslab` for typer: its commands and the options that it has itself."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer

import hyperslab
from hyperslab.cli.commands import Commands
from hyperslab.errors import UsageError
from hyperslab.meant import meant

app: typer.Typer = typer.Typer(
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
            if said := wrong.format_message():  # with rich, typer has printed it already
                typer.echo(said, err=True)
            sys.exit(2)
        hint = "" if context is None else f"; {context.command_path} --help says what there is"
        raise UsageError(_in_our_words(wrong.format_message(), context) + hint) from error
    if isinstance(status, int):
        sys.exit(status)


# What typer says of numbers, in the words of a person.
PLAIN = {
    r"Input should be greater than or equal to (\S+)": r"give at least \1",
    r"Input should be less than or equal to (\S+)": r"give at most \1",
    r"Input should be a valid integer.*": "give a whole number",
    r"Input should be a valid number.*": "give a number",
}


def _in_our_words(said: str, context: Any) -> str:
    """Typer's message as one line that may go on."""
    said = " ".join(said.split()).replace("Value error, ", "")
    for theirs, ours in PLAIN.items():
        said = re.sub(theirs, ours, said)
    if choices := re.search(r"'([^']*)' is not one of ('[^']*'(?:, '[^']*')*)", said):
        said = said.rstrip(".") + meant(choices[1], re.findall(r"'([^']*)'", choices[2]))
    elif (extra := re.search(r"unexpected extra argument.*?\((?:.* )?(--?[A-Za-z][\w-]*).*\)", said)) and context:
        # `read` takes what begins with a minus sign for a selection, until there is nothing more that it can be.
        known = [name for one in context.command.params for name in getattr(one, "opts", ())]
        return f"there is no option {extra[1]}{meant(extra[1], [name for name in known if name.startswith('-')])}"
    said = re.sub(r"\.? \(?(?:Did you mean|Possible options:) (.+?)[?)]*$", r"; did you mean \1?", said)
    return said[:1].lower() + said[1:].rstrip(".")
