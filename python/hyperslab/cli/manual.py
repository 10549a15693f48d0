"""The manual page `hyperslab.1`, made from what the commands say of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import hyperslab
from hyperslab.cli.commands import GROUPS

ABOUT = """\
.TH HYPERSLAB 1 "" "hyperslab {version}" "User Commands"
.SH NAME
hyperslab \\- read and write arrays of HDF5, NetCDF, FITS, HDF4 and Zarr, and find out how fast that is
.SH SYNOPSIS
.B hyperslab
.I command
.RI [ arguments ]
.SH DESCRIPTION
hyperslab shows, reads, checks, indexes and converts files with arrays, keeps versions of them, and serves the reads of
programs that you do not change. It measures formats, predicts what accesses cost, and says which layout is best.
.PP
.B hyperslab
.I command
.B \\-\\-help
says the same as this page.
"""
END = """\
.SH EXIT STATUS
0 if all went well, 1 if something failed or a file is damaged, 2 if the request was wrong; 128 and the number of the
signal that ended the command.
.SH ENVIRONMENT
.TP
.B HYPERSLAB_THREADS
How many threads read and decode; by default one for each processor.
.SH SEE ALSO
.BR h5dump (1),
.BR ncdump (1)
"""


def manual() -> str:
    """The page, in the language of man."""
    parts = [ABOUT.format(version=_escaped(hyperslab.__version__))]
    for title, group in GROUPS.items():
        parts.append(f".SH {title.upper()}\n")
        for name, entry in group.items():
            parts += _command(entry.load(name), name)
    return "".join([*parts, END])


def _command(command: Any, path: str) -> Iterator[str]:
    listed = [(name, one) for name, one in getattr(command, "commands", {}).items() if not one.hidden]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    words = [_escaped(_metavar(one)) for one in arguments] or (["command"] if listed else [])
    yield f".SS hyperslab {path} {' '.join(words)}".rstrip() + "\n"
    yield from _paragraphs(command.help or "")
    for one in arguments:
        yield f".TP\n.I {_escaped(_metavar(one))}\n{_line(one.help or '')}\n"
    for one in options:
        names = ", ".join(_escaped(name) for name in (*one.opts, *one.secondary_opts))
        value = "" if one.is_flag else f" {_escaped(_metavar(one))}"
        yield f".TP\n.B {names}{value}\n{_line(one.help or '')}\n"
    for name, one in listed:
        yield from _command(one, f"{path} {name}")


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).lower().replace("_", " ")


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP\n"
        for line in paragraph.splitlines():
            is_example = line.strip().startswith("Example:")
            yield f"{_line(line.strip())}\n" + (".br\n" if is_example else "")


def _line(text: str) -> str:
    """Text that begins no request of roff."""
    return re.sub(r"^([.'])", r"\\&\1", _escaped(" ".join(text.split())))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")
