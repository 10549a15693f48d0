"""All commands, from the tree of commands, each in a process of its own that begins with everything imported.

`python every_command.py FOLDER VALUE...` gives each VALUE to each argument of each command, and to each option that
names a file to read; for the value `--closed` it asks each command for its help while standard output is closed. It
prints JSON: for each value and line its status and what it said on standard error.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
import typing
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from hyperslab.cli.commands import ENTRIES

sys.path.append(str(Path(__file__).parents[1]))
from prepared_process import prepare

MOST_SECONDS = 100  # of a command that hangs
# Options that name what is written, or where measurements take place.
WRITTEN = {"output", "figure", "html", "log", "directory", "scratch", "mount"}
# What a command wants to know besides a file.
MORE = {"advise": ["--like", "maps"]}


def leaves() -> Iterator[tuple[list[str], Any]]:
    """The words of each command, and what click knows of it."""
    for name, entry in ENTRIES.items():
        yield from _below([name], entry.load(name))


def _below(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
        return
    for name, each in below.items():
        if not each.hidden:
            yield from _below([*words, name], each)


def lines(value: str, folder: Path) -> Iterator[list[str]]:
    """The lines that give a value to a command: to all its arguments, or to one of its options."""
    for words, command in leaves():
        hints = typing.get_type_hints(inspect.unwrap(command.callback))
        arguments = [one for one in command.params if type(one).__name__.endswith("Argument")]
        options = [one for one in command.params if one not in arguments]
        needed = [word for one in options if one.required for word in (one.opts[0], str(folder / "out.json"))]
        if arguments:
            other = str(folder / ("b.h5" if words == ["convert"] else "a.h5"))
            given = [value for one in arguments if one.nargs == 1] or [value, other]
            yield [*words, *given, *needed, *MORE.get(words[0], [])]
        for option in options:
            if option.name not in WRITTEN and Path in (hints[option.name], *typing.get_args(hints[option.name])):
                two = [str(folder / name) for name in ("a.h5", "b.h5")]
                given = [two if one.nargs == -1 else two[:1] for one in arguments if one.required]
                yield [*words, *chain(*given), *needed, option.opts[0], value]


def run(line: list[str], folder: Path, *, is_closed: bool) -> tuple[int, str]:
    """The status of a line, and what it said."""
    said = folder / "said"
    child = os.fork()
    if child == 0:
        signal.alarm(MOST_SECONDS)  # ends the process
        files = [os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)]
        files.append(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        for number, file in enumerate(files):
            os.dup2(file, number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        if is_closed:
            sys.stdout.close()
            sys.stdout = sys.__stdout__ = None
        _work(line)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said.read_text()


def _work(line: list[str]) -> typing.NoReturn:
    from hyperslab.__main__ import main

    sys.argv = ["hyperslab", *line]
    status = 0
    try:
        main()
        sys.stdout.flush()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 99
    os._exit(status)


def main() -> None:
    """Run all lines."""
    prepare([])  # what the commands import when they run: else each would import it anew
    folder, found = Path(sys.argv[1]), {}
    os.chdir(folder)
    for value in sys.argv[2:]:
        is_closed = value == "--closed"
        asked = [[*words, "--help"] for words, _ in leaves()] if is_closed else list(lines(value, folder))
        found[value] = [(" ".join(line), *run(line, folder, is_closed=is_closed)) for line in asked]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
