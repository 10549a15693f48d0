"""`hyperslab trace` records what a program reads and writes; `hyperslab trace show` says what that was."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hyperslab.errors import UsageError

RUN = "run-program"


class _ProgramOrCommand(TyperGroup):
    """What is not a command of ours is the program to run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ARG002
        name = args[0] if args else ""
        return (name, self.commands[name], args[1:]) if name in self.commands else (RUN, self.commands[RUN], args)


app = typer.Typer(
    cls=_ProgramOrCommand,
    help="Record what a program reads and writes: hyperslab trace -o run.trace -- python analysis.py",
    subcommand_metavar="[-- PROGRAM [ARGS]...] | COMMAND [ARGS]...",
)


@app.callback()
def _output(
    context: typer.Context,
    output: Annotated[Path, typer.Option("-o", "--output", help="The trace to write.")] = Path("run.trace"),
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing about the trace.")] = False,
) -> None:
    context.obj = (output, quiet)


@app.command(
    RUN,
    hidden=True,
    context_settings={
        "ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False,
        "help_option_names": [],
    },
)  # fmt: skip
def run_program(context: typer.Context) -> None:
    """Run a program, and record what it reads and writes."""
    from hyperslab.trace.starting import run_traced

    output, is_quiet = context.obj
    if not context.args:
        raise UsageError("name the program to run: hyperslab trace -o run.trace -- python analysis.py")
    done = run_traced(context.args, output)
    lines = [] if is_quiet else list(done.messages)
    if done.trace is not None and not is_quiet:
        count, arrays = len(done.trace), len({(one.file, one.array) for one in done.trace.arrays})
        what = f"{count} accesses to {arrays} arrays" if count else "no access to an array was seen"
        lines += [f"{done.path}: {what}", *done.trace.notes]
        if count:
            lines.append(f"look at it: hyperslab trace show {done.path}")
    for line in lines:
        typer.echo(f"hyperslab trace: {line}", err=True)
    if done.status < 0:
        _end_by(-done.status)
    sys.exit(done.status)


def _end_by(number: int) -> None:
    """End by the signal that ended the program, without a core file of our own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)
