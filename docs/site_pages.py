"""What MkDocs calls while it builds the site: adds the reference pages, and mends links that leave the site.

`reference/python.md` comes from the docstrings of the public names, `reference/commands.md` from the help texts of the
commands. Neither is committed, so neither can be out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", flags=re.MULTILINE)
# Public names that are not in `hyperslab` itself.
MORE = {
    "hyperslab.versions": ("repair",),
    "hyperslab.h5": ("File",),
    "hyperslab.archive.zarr_store": ("ZarrStore",),
    "hyperslab.archive.zarr_pipeline": ("Pipeline",),
    "hyperslab.references.virtualizarr": ("HyperslabParser",),
}


def python_page() -> str:
    """The reference of the Python interface, as Markdown."""
    import hyperslab

    shown = sorted((name for name in hyperslab.__all__ if not name.startswith("_")), key=str.lower)
    parts = ["# Python\n\nThis page comes from the docstrings. The other pages begin with `import hyperslab as hs`.\n"]
    parts += [_described(f"hyperslab.{name}", getattr(hyperslab, name)) for name in shown]
    for module, names in MORE.items():
        for name in names:
            try:
                parts.append(_described(f"{module}.{name}", getattr(import_module(module), name)))
            except ImportError as error:  # the library that it is for is not installed
                parts.append(f"## {module}.{name}\n\nNot described here: {error}\n")
    return "\n".join(parts)


def _described(path: str, found: Any) -> str:
    parts = [f"## {path}\n"]
    if inspect.isclass(found):
        parts.append(markdown_of(inspect.getdoc(found) or ""))
        parts += _members(path.rpartition(".")[2], found)
    else:
        parts += [_call(path.rpartition(".")[2], found), markdown_of(inspect.getdoc(found) or "")]
    return "\n".join(parts)


def _members(owner: str, found: type) -> Iterator[str]:
    """The methods and properties of a class that have a docstring."""
    facts = []
    for name, member in inspect.getmembers(found):
        said = inspect.getdoc(member)
        if name.startswith("_") or said is None or not _is_ours(member):
            continue
        if callable(member):
            yield f"### {owner}.{name}\n"
            yield _call(name, member)
            yield markdown_of(said)
        else:
            facts.append(f"| `{name}` | {_cell(said)} |")
    if facts:
        yield "\n".join([f"### Properties of {owner}\n", "| property | meaning |", "|---|---|", *facts, ""])


def _is_ours(member: Any) -> bool:
    """Whether a member is described by us, and not inherited from Python's own classes."""
    known = getattr(member, "fget", None) or getattr(member, "func", None) or member
    return not isinstance(known, FunctionType) or known.__module__.startswith("hyperslab")


def _call(name: str, found: Any) -> str:
    """How a function is called, with its defaults; the types are in its docstring."""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return ""
    bare = [
        one.replace(annotation=inspect.Parameter.empty) for key, one in signature.parameters.items() if key != "self"
    ]
    shown = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    return f"```python\n{name}{shown}\n```\n"


def markdown_of(docstring: str) -> str:
    """A docstring in NumPy's style as Markdown: sections become headings, entries become lists."""
    pieces = SECTION.split(docstring)
    made = [pieces[0].rstrip()]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        made.append(f"**{title}**")
        made.append(_example(body) if title == "Examples" else "\n".join(_entries(body)))
    return "\n\n".join(made) + "\n"


def _example(body: str) -> str:
    return f"```python\n{body.strip()}\n```"


def _entries(body: str) -> Iterator[str]:
    """`name : type` lines with what follows them, indented."""
    entry: list[str] = []
    for line in [*body.rstrip().splitlines(), "end"]:
        if line[:1].isspace() or not line:
            entry.append(line.strip())
            continue
        if entry:
            head, _, kind = entry[0].partition(" : ")
            typed = f" (`{kind}`)" if kind else ""
            yield f"- `{head}`{typed}: {' '.join(filter(None, entry[1:]))}"
        entry = [line]


def commands_page() -> str:
    """The reference of the command line, as Markdown."""
    import click

    from hyperslab.cli.commands import ENTRIES, GROUPS
    from hyperslab.running.command import USAGE

    parts = ["# Commands\n\nThis page is made from the help texts. Each command prints its own with `--help`.\n"]
    parts += ["| to do this | commands |", "|---|---|"]
    parts += [f"| {title.lower()} | {', '.join(f'`{name}`' for name in group)} |" for title, group in GROUPS.items()]
    parts.append("")
    for name, entry in ENTRIES.items():
        command = entry.load(name)
        if name == "run":  # which starts before Typer would be imported, and prints its own help
            parts.append(f"## hyperslab run\n\n```text\n{USAGE}\n```\n")
            continue
        parts += _command(f"hyperslab {name}", command)
        if isinstance(command, click.Group) or hasattr(command, "commands"):
            for below, inner in sorted(command.commands.items()):
                if below == "run-program":  # what runs if no command is named
                    continue
                parts += _command(f"hyperslab {name} {below}", inner, level="###")
    return "\n".join(parts)


def _command(path: str, command: Any, level: str = "##") -> Iterator[str]:
    yield f"{level} {path}\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    rows = []
    for option in command.params:
        if getattr(option, "hidden", False) or option.name == "help":
            continue
        names = [option.metavar or option.name] if option.param_type_name == "argument" else option.opts
        rows.append(
            f"| {_cell(', '.join(f'`{name}`' for name in names))} | {_cell(getattr(option, 'help', None) or '')} |"
        )
    if rows:
        yield "\n".join(["| argument or option | meaning |", "|---|---|", *rows, ""])


def _cell(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def on_files(files: Any, config: Any) -> Any:
    """MkDocs' event: the reference pages are added."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/python.md", content=python_page()))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """MkDocs' event: a link to a file of the repository that is not in the site becomes the name of that file."""
    depth = page.file.src_uri.count("/")

    def named(link: re.Match[str]) -> str:
        target = link[2].partition("#")[0]
        leaves = target.startswith("../" * (depth + 1)) or target.endswith(".py")
        return f"{link[1]} (`{target.replace('../', '')}`)" if leaves else link[0]

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", named, text)
