"""`hyperslab formats` shows which formats are installed and what each can do."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from hyperslab.cli.output import console, line
from hyperslab.errors import MissingLibrary
from hyperslab.formats import FORMATS, availability, format_class
from hyperslab.formats.contract import Capabilities


def formats(
    name: Annotated[str | None, typer.Argument(help="Print the manual page of this format.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the formats, what each can do, and how to install those that are missing."""
    rows = [describe(known) for known in ([name] if name else FORMATS)]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
    elif name:
        typer.echo(_manual_page(name, rows[0]))
    else:
        _table(rows)


def describe(name: str) -> dict[str, Any]:
    """One row of the list: name, available, reason, library, default_layout, capabilities."""
    known = availability(name)
    missing = isinstance(known, MissingLibrary)
    return {
        "name": name,
        "available": not missing,
        "reason": str(known) if missing else None,
        "library": None if isinstance(known, MissingLibrary) else asdict(known),
        "default_layout": format_class(name).default_layout,
        "capabilities": _plain(format_class(name).capabilities),
    }


def _plain(capabilities: Capabilities) -> dict[str, Any]:
    return {key: sorted(v) if isinstance(v, frozenset) else v for key, v in asdict(capabilities).items()}


def _can(capabilities: dict[str, Any]) -> str:
    return " ".join(
        key for key, value in capabilities.items() if value is True and key not in ("exact", "self_describing")
    )


def _manual_page(name: str, row: dict[str, Any]) -> str:
    known = format_class(name)
    page = inspect.getdoc(sys.modules[known.__module__]) or ""
    options = inspect.signature(known)
    lines = [f"{name}: {'installed' if row['available'] else row['reason']}", "", page, ""]
    lines += [f"default layout: {row['default_layout']}", f"options: {options}", ""]
    lines += [
        f"{key}: {' '.join(v) if isinstance(v, list) else v}" for key, v in row["capabilities"].items() if v != ""
    ]
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]]) -> None:
    table = Table("format", "library", "can", "codecs", "dtypes", "byte order", box=None)
    missing: dict[str, list[str]] = {}
    for row in rows:
        can = row["capabilities"]
        library = row["library"]
        if library is None:
            missing.setdefault(row["reason"], []).append(row["name"])
        what = f"{library['name']} {library['version']}" if library else "not installed"
        table.add_row(
            row["name"], what, _can(can), " ".join(can["codecs"]) or "–", f"{len(can['dtypes'])}", can["byte_order"]
        )
    console().print(table)
    for reason, names in missing.items():  # in lines of their own, so that you can copy the command
        console().print(line(f"for {', '.join(names)}: {reason}"), soft_wrap=True)
