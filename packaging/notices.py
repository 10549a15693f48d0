"""Write the licences of all that is linked into our libraries: `python packaging/notices.py TARGET`.

The list of crates comes from `cargo metadata` for the processor that is built for (`--machine`), and the texts from
their sources as cargo has fetched them. Rust's standard library brings its own list. If zig links, `--zig` gives its
folder, and the licences of what it adds come too.
"""

from __future__ import annotations

import argparse
import html
import json
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINKED = ("hyperslab-python", "hyperslab-preload")
TEXT = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)[\w.-]*", re.IGNORECASE)
NO_TEXT = (".rs", ".py", ".c", ".h", ".html", ".toml", ".json", ".yml", ".sh")
RULE = "=" * 80
# What Rust's standard library lists for other systems than Linux.
ELSEWHERE = re.compile(r"windows|wasi|wit-|hermit|vex-|r-efi|moto-|fortanix|dlmalloc")
ABOUT = """hyperslab is distributed under the Apache License 2.0 (the file LICENSE).
Its compiled libraries contain the following software, under the licences that follow.
Crates with the same text share it.
"""
Entry = tuple[str, str, list[str]]  # name and version, licence, texts


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


def target_of(machine: str) -> str:
    """Rust's name of a processor with Linux and glibc."""
    return f"{machine}-unknown-linux-gnu"


def packages(machine: str) -> list[dict[str, Any]]:
    """What cargo says of the crates that are linked for a processor."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target_of(machine)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return linked(json.loads(done.stdout))


def crates(machine: str) -> Iterator[Entry]:
    """What our crates link, and what these link."""
    for package in packages(machine):
        where = f" ({package['repository']})" if package["repository"] else ""
        yield (
            f"{package['name']} {package['version']}",
            f"{package['license'] or 'see its text'}{where}",
            list(texts(package)),
        )


def standard_library() -> Iterator[Entry]:
    """Rust's standard library, and the crates that it links: rustc's own page lists them."""
    asked = {word: subprocess.check_output(["rustc", *words], text=True).split() for word, words in
             {"version": ["--version"], "folder": ["--print", "sysroot"]}.items()}  # fmt: skip
    folder = Path(asked["folder"][0]) / "share" / "doc" / "rust"
    own = [folder / "licenses" / f"{name}.txt" for name in ("MIT", "Unicode-3.0")]
    name = f"the Rust standard library {asked['version'][1]}"
    yield (
        name,
        "MIT OR Apache-2.0, its tables of Unicode Unicode-3.0",
        [one.read_text().strip() for one in own if one.exists()],
    )
    page = folder / "COPYRIGHT-library.html"
    parts = re.split(r"<h3>\W*([\w-]+?)-(\d[^<]*)</h3>", page.read_text())[1:] if page.exists() else []
    for crate, version, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if not ELSEWHERE.match(crate):
            licence = re.search(r"License:</b> ([^<]+)", said)
            found = [html.unescape(text).strip() for text in re.findall(r"<pre>(.*?)</pre>", said, flags=re.DOTALL)]
            yield f"{crate} {version}", f"{licence[1] if licence else 'see its text'} (in the standard library)", found


def zig(folder: Path) -> Iterator[Entry]:
    """What zig links: LLVM's unwinder, and its own compiler_rt."""
    yield (
        "libunwind of LLVM",
        "Apache-2.0 WITH LLVM-exception",
        [(folder / "lib" / "libunwind" / "LICENSE.TXT").read_text().strip()],
    )
    yield "compiler_rt of zig", "MIT", [(folder / "LICENSE").read_text().strip()]


def notices(machine: str, linker: Path | None = None) -> str:
    """The whole file."""
    users: dict[str, list[str]] = {}
    first: dict[str, str] = {}  # of texts that differ in their spaces
    lines = [ABOUT]
    for name, licence, found in [*crates(machine), *standard_library(), *(zig(linker) if linker else ())]:
        more = "" if found else "; its sources have no file with the text"
        lines.append(f"{name}: {licence}{more}")
        for text in dict.fromkeys(first.setdefault(" ".join(one.split()), one) for one in found):
            users.setdefault(text, []).append(name)
    for text, names in users.items():
        lines += ["", RULE, ", ".join(names), RULE, "", text]
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--machine", default=platform.machine())
    parser.add_argument("--zig", type=Path)
    asked = parser.parse_args()
    asked.target.write_text(notices(asked.machine, asked.zig))


if __name__ == "__main__":
    main()
