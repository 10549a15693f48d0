"""No circle of modules in Rust: what each file names of its crate, read from its `use` lines and its paths.

A circle is a set of modules of which each needs all others: none of them can be read, tested or moved alone. Tests are
left out (`#[cfg(test)]`), and so is a parent module's re-export: who names `crate::plan::ReadPlan` needs the file that
defines `ReadPlan`, not `plan/mod.rs`. A parent that has code of its own counts like any other module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"
Module = tuple[str, ...]

# What no path can be found in: comments, strings, characters.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'', re.DOTALL)
USE = re.compile(r"(?P<public>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")
DEFINED = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static)\s+(\w+)")
TEST_ITEM = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?(?P<item>mod\s+(?P<module>\w+)\s*;|)")


class Source:
    """One file: its code without tests, what it re-exports, and what it names."""

    def __init__(self, module: Module, text: str) -> None:
        self.module = module
        code = NO_CODE.sub(" ", text)
        self.test_modules = {found["module"] for found in TEST_ITEM.finditer(code) if found["module"]}
        code = with_inner_modules_as_their_file(without_test_items(code))
        self.brings: dict[str, list[str]] = {}  # names that its `use` lines bring, which its children can take from it
        self.uses: list[list[str]] = []
        body = re.sub(r"\bmod\s+\w+\s*;", " ", USE.sub(" ", code))
        for found in USE.finditer(code):
            for name, path in leaves(found["tree"]):
                self.brings[name] = path
                if not found["public"] or re.search(rf"\b{name}\b", body):
                    self.uses.append(path)
        self.defines = set(DEFINED.findall(body))
        self.paths = [found[0].split("::") for found in PATH.finditer(body)]


def without_test_items(code: str) -> str:
    """The code without what stands behind `#[cfg(test)]`: a module, function, impl or line."""
    while (found := TEST_ITEM.search(code)) is not None:
        end = found.end()
        if not found["module"]:
            brace, line = code.find("{", end), code.find(";", end)
            end = line + 1 if brace < 0 or 0 <= line < brace else closing(code, brace)
        code = code[: found.start()] + code[end:]
    return code


def with_inner_modules_as_their_file(code: str) -> str:
    """The code with `super` of modules that stand in the file itself as `self`: the same file."""
    for found in re.finditer(r"\bmod\s+\w+\s*(?=\{)", code):
        end = closing(code, found.end())
        inside = code[found.end() : end].replace("super::", "self:: ")  # as long as before
        code = code[: found.end()] + inside + code[end:]
    return code


def closing(code: str, brace: int) -> int:
    """Where the block that begins at a brace is over."""
    depth = 0
    for place in range(brace, len(code)):
        depth += {"{": 1, "}": -1}.get(code[place], 0)
        if depth == 0:
            return place + 1
    raise AssertionError("a brace without its other half")


def leaves(tree: str) -> Iterator[tuple[str, list[str]]]:
    """Each name that a `use` tree brings, with the path that it stands for."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        prefix = [part for part in "".join(head.split()).split("::") if part]
        for branch in branches(rest[: rest.rindex("}")]):
            for name, path in leaves(branch):
                yield (prefix[-1], prefix) if path == ["self"] else (name, prefix + path)
    elif tree:
        path, _, alias = tree.partition(" as ")
        parts = "".join(path.split()).split("::")
        yield (alias.strip() or parts[-1]), parts


def branches(text: str) -> Iterator[str]:
    """The parts between the commas of a group, groups in it left whole."""
    depth, begun = 0, 0
    for place, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield text[begun:place]
            begun = place + 1
    yield text[begun:]


class Crate:
    """The modules of one crate, and which of them need which."""

    def __init__(self, folder: Path) -> None:
        self.sources: dict[Module, Source] = {}
        for path in sorted((folder / "src").rglob("*.rs")):
            parts = path.relative_to(folder / "src").with_suffix("").parts
            module = parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts
            self.sources[module] = Source(module, path.read_text())
        tests = {(*s.module, name) for s in self.sources.values() for name in s.test_modules}
        self.sources = {m: s for m, s in self.sources.items() if not any(m[: len(t)] == t for t in tests)}

    def needs(self, module: Module) -> set[Module]:
        """The modules that define what a module names."""
        source, found = self.sources[module], set()
        for path in source.uses + source.paths:
            target = self.defining(module, path)
            if target is None and path[0] in source.brings and path != source.brings[path[0]]:
                target = self.defining(module, source.brings[path[0]] + path[1:])
            if target is not None:
                found.add(target)
        return found - {module}

    def defining(
        self, module: Module, path: list[str], seen: frozenset[tuple[Module, str]] = frozenset()
    ) -> Module | None:
        """The module in which the thing at a path is defined; nothing for what is no module's of this crate."""
        at, rest = self.start(module, path)
        if at is None:
            return None
        while rest and (*at, rest[0]) in self.sources:
            at, rest = (*at, rest[0]), rest[1:]
        if not rest:
            return None  # the module itself: what is taken of it is named where it is used
        source = self.sources[at]
        if (at, rest[0]) in seen:
            return None
        seen |= {(at, rest[0])}
        if rest[0] in source.brings and rest[0] not in source.defines:
            return self.defining(at, source.brings[rest[0]] + rest[1:], seen)
        return at

    def start(self, module: Module, path: list[str]) -> tuple[Module | None, list[str]]:
        at, rest = module, list(path)
        if rest[0] == "crate":
            return (), rest[1:]
        if rest[0] not in {"self", "super"}:
            return (module, rest) if (*module, rest[0]) in self.sources else (None, rest)
        while rest and rest[0] in {"self", "super"}:
            at, rest = (at[:-1] if rest[0] == "super" else at), rest[1:]
        return at, rest

    def circles(self) -> list[list[str]]:
        """Sets of modules of which each needs all others, directly or by way of others (Tarjan's, by reachability)."""
        direct = {module: self.needs(module) for module in self.sources}
        reached = {module: reachable(direct, module) for module in direct}
        found = {frozenset(m for m in reached[module] if module in reached[m]) for module in direct}
        return sorted(sorted("::".join(m) or "lib" for m in circle) for circle in found if circle)


def reachable(direct: dict[Module, set[Module]], module: Module) -> set[Module]:
    found, new = set(), [module]
    while new:
        for target in direct[new.pop()] - found:
            found.add(target)
            new.append(target)
    return found


FOLDERS = sorted(path.parent for path in CRATES.glob("*/Cargo.toml"))
# Crates whose top folders need each other in one direction only, too.
LAYERED = ["hyperslab-core", "hyperslab-model"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_modules_of_a_crate_need_each_other_in_one_direction(folder: Path) -> None:
    crate = Crate(folder)
    assert len(crate.sources) > 1
    assert crate.circles() == []


@pytest.mark.parametrize("name", LAYERED)
def test_folders_of_a_crate_need_each_other_in_one_direction(name: str) -> None:
    crate = Crate(CRATES / name)
    direct: dict[Module, set[Module]] = {}
    for module in crate.sources:
        direct.setdefault(module[:1], set()).update(m[:1] for m in crate.needs(module) if m[:1] != module[:1])
    for folder in direct:
        assert folder not in reachable(direct, folder), f"{folder} needs itself, by way of {direct[folder]}"


def crate_of(folder: Path, files: dict[str, str]) -> Crate:
    for name, text in files.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Crate(folder)


def test_circles_are_found_however_they_are_written(tmp_path: Path) -> None:
    grouped = {"a.rs": "use crate::{b::{self, Two}, c::Three};\nstruct One;", "b.rs": "use super::a::One;\nstruct Two;"}
    inline = {"d.rs": "fn four() { crate::e::five() }", "e.rs": "use crate::d;\nfn five() { d::four() }"}
    parent = {"f/mod.rs": "mod g;\nuse g::Seven;\nstruct Six;", "f/g.rs": "use super::Six;\nstruct Seven;"}
    renamed = {
        "h.rs": "use crate::i::Nine as Ten;\nstruct Eight;",
        "i.rs": "use crate::h::{Eight as Old};\nstruct Nine;",
    }
    lone = {"c.rs": "struct Three;"}
    found = crate_of(tmp_path, grouped | inline | parent | renamed | lone).circles()
    assert found == [["a", "b"], ["d", "e"], ["f", "f::g"], ["h", "i"]]


def test_what_is_no_circle_is_not_taken_for_one(tmp_path: Path) -> None:
    facade = {
        "p/mod.rs": "mod q;\nmod r;\npub use q::{One, two};\npub(crate) use self::r::Three;",
        "p/q.rs": "use thiserror::Error;\nuse super::Three;\npub struct One;\npub fn two() {}",
        "p/r.rs": "pub struct Three;",
    }
    tests = {
        "s.rs": "fn four() {}\n#[cfg(test)]\nmod tests { use super::*; use crate::t::five; fn x() { let y = '{'; } }",
        "t.rs": 'use crate::s::four;\nfn five() {}\n#[cfg(test)]\n#[path = "u.rs"]\nmod u;',
        "t/u.rs": "use crate::p::One;\nuse super::five;",
    }
    prose = {
        "v.rs": '//! See [`crate::w::Six`].\nfn a() -> &\'static str { "crate::w::Six //" }',
        "w.rs": "use crate::v::a;\nstruct Six;",
        "x.rs": "struct Seven;\nmod inner { use super::Seven; }",
    }
    assert crate_of(tmp_path, facade | tests | prose).circles() == []
