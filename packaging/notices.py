"""Write the licences of all crates that are linked into our libraries: `python packaging/notices.py TARGET`.

The list comes from `cargo metadata`, the texts from the crates' sources as cargo has fetched them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINKED = ("hyperslab-python", "hyperslab-preload")
PLATFORM = "x86_64-unknown-linux-gnu"
TEXT = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)[\w.-]*", re.IGNORECASE)
NO_TEXT = (".rs", ".py", ".c", ".h", ".html", ".toml", ".json", ".yml", ".sh")
RULE = "=" * 80
ABOUT = """hyperslab is distributed under the Apache License 2.0 (the file LICENSE).
Its compiled libraries contain the following software, under the licences that follow.
Crates with the same text share it.
"""


def linked(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """The packages that end up in our libraries: without those that only build or test."""
    packages = {one["id"]: one for one in metadata["packages"]}
    nodes = {one["id"]: one for one in metadata["resolve"]["nodes"]}
    waiting = [one["id"] for one in metadata["packages"] if one["name"] in LINKED]
    found: set[str] = set()
    while waiting:
        number = waiting.pop()
        if number in found:
            continue
        found.add(number)
        used = (one for one in nodes[number]["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"]))
        waiting += [one["pkg"] for one in used]
    others = [packages[number] for number in found if packages[number]["source"] is not None]
    return sorted(others, key=lambda one: (one["name"], one["version"]))


def texts(package: dict[str, Any]) -> Iterator[str]:
    """The licence files of a crate, and of the sources in other languages that it brings."""
    folder = Path(package["manifest_path"]).parent
    for path in sorted(folder.rglob("*")):
        if path.is_file() and TEXT.fullmatch(path.name) and path.suffix not in NO_TEXT:
            yield path.read_text(errors="replace").replace("\r\n", "\n").strip()


def notices() -> str:
    """The whole file."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    users: dict[str, list[str]] = {}
    lines = [ABOUT]
    for package in linked(metadata):
        name = f"{package['name']} {package['version']}"
        found = list(dict.fromkeys(texts(package)))
        more = "" if found else "; its sources have no file with the text"
        where = f" ({package['repository']})" if package["repository"] else ""
        lines.append(f"{name}: {package['license'] or 'see its text'}{where}{more}")
        for text in found:
            users.setdefault(text, []).append(name)
    for text, names in users.items():
        lines += ["", RULE, ", ".join(names), RULE, "", text]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(notices())
