"""The commands by name, each imported only when it runs: `hyperslab --help` would otherwise import all libraries."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class Entry:
    """Where a command is, and the line that the list of commands shows for it.

    `place` is a module below this one and a name in it: a function, or a `typer.Typer` with more commands.
    """

    place: str
    line: str
    settings: dict[str, Any] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """Import the command."""
        module, _, attribute = self.place.partition(":")
        command = getattr(import_module(f"hyperslab.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            made: Any = typer.main.get_group(command)
        else:
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(name, context_settings=self.settings)(command)
            made = typer.main.get_command(alone)
        made.name = name
        return made


# What follows the program's name is the program's.
_PROGRAM = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}
# By what a person wants, in the order in which people come to want it: `hyperslab --help` shows them so.
GROUPS: dict[str, dict[str, Entry]] = {
    "Look at files": {
        "info": Entry(
            "info:info", "Show the content of a file: groups, arrays, chunks, codecs, sizes, and attributes."
        ),
        "verify": Entry(
            "verify:verify",
            "Decode every chunk and attribute, and check checksums. The exit status is 1 if anything is damaged.",
        ),
        "audit": Entry(
            "audit:audit",
            "Show which files are slow to read from a server or a disk, why, and which commands make them fast.",
        ),
    },
    "Read arrays": {
        # A selection may begin with a minus sign: "-1" is the last index, not an option.
        "read": Entry("read:read", "Read a selection of an array.", {"ignore_unknown_options": True}),
        "index": Entry(
            "index:index",
            "Save where files keep their chunks, so that they open at once. Several files become groups.",
        ),
    },
    "Run programs": {
        "run": Entry("run:run", "Run a program; our engine serves its HDF5 reads.", _PROGRAM),
        "trace": Entry(
            "trace:app", "Record what a program reads and writes: hyperslab trace -o run.trace -- python analysis.py"
        ),
    },
    "Choose a layout": {
        "advise": Entry(
            "advise:advise",
            "Recommend the layout that makes your accesses fast, and what helps without rewriting.",
        ),
        "predict": Entry(
            "predict:predict_costs",
            "Predict how long a workload takes in each layout with each library on the calibrated machine.",
        ),
        "calibrate": Entry(
            "calibrate:calibrate_machine",
            "Measure once what accesses cost on this machine and file system, so that `predict` can price workloads.",
        ),
    },
    "Convert files": {
        "convert": Entry(
            "convert:convert", "Write an archive again, in another format or with other chunks and codecs."
        ),
        "formats": Entry(
            "formats:formats", "List the formats, what each can do, and how to install those that are missing."
        ),
    },
    "Keep versions": {
        "versions": Entry(
            "versions:app",
            "Keep versions of arrays: list, compare, merge, import, export and delete them. See docs/versions.md.",
        ),
    },
    "Measure": {
        "bench": Entry("bench:bench", "Measure which array format is fastest for arrays like yours, on this machine."),
        "studies": Entry("studies:studies", "List the studies that come with hyperslab, or show one in full."),
        "report": Entry("report:report", "Make tables, figures and report.html again from the trials of a run."),
        "compare": Entry(
            "compare:compare_runs",
            "Compare two runs of the same studies, and show what became faster or slower and by how much.",
        ),
        "evaluate": Entry(
            "evaluate:evaluate",
            "Replay published experiments on this machine, predict each one, and report how good the predictions are.",
        ),
        "lab": Entry("lab:app", "Start an emulated parallel file system, for measurements."),
    },
    "Set up your shell": {
        "completion": Entry(
            "completion:completion",
            "Print a script that lets your shell complete commands, options, arrays of files, and studies.",
        ),
    },
}
ENTRIES = {name: entry for group in GROUPS.values() for name, entry in group.items()}


class Commands(TyperGroup):
    """A group that imports a command when it is asked for, and lists all of them without importing any."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: MutableMapping[str, Any] = {
            name: TyperCommand(name, help=entry.line, rich_help_panel=title)
            for title, group in GROUPS.items()
            for name, entry in group.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else ENTRIES[name].load(name), rest
