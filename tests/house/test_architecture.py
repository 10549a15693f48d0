"""ARCHITECTURE.md is two pages and true: its layers, its nouns and their files, its crates, and where `unsafe` stands.

`test_house.py` keeps the layers themselves and the clocks, `test_rust_circles.py` the circles.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from test_house import LAYERS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
MOST_WORDS = 1300  # of two pages
ROWS = re.findall(r"^\| `([^`]+)` \| (.+) \|$", TEXT, flags=re.MULTILINE)
NOUNS = [(room, noun, file) for room, listed in ROWS for noun, file in re.findall(r"`(\w+)` `([^`]+)`", listed)]


def test_it_has_two_pages() -> None:
    assert len(TEXT.split()) <= MOST_WORDS


def test_every_entry_of_the_table_is_a_noun_and_its_file() -> None:
    assert len(ROWS) >= 12
    for _, listed in ROWS:
        assert re.fullmatch(r"`\w+` `[^`]+`(, `\w+` `[^`]+`)*", listed), listed


@pytest.mark.parametrize(("room", "noun", "file"), NOUNS, ids=lambda one: one)
def test_a_noun_is_defined_where_the_table_says(room: str, noun: str, file: str) -> None:
    path = ROOT / room / file
    assert path.is_file(), f"{room}/{file} does not exist"
    if path.suffix == ".py":
        defined = rf"^(?:class {noun}\b|{noun}(?:: TypeAlias)? = )"
    else:
        defined = rf"^pub(?:\([a-z]+\))? (?:struct|enum|trait|type) {noun}\b"
    assert re.search(defined, path.read_text(), flags=re.MULTILINE), f"{room}/{file} does not define {noun}"


DRAWN = TEXT.partition("## Layers")[2].partition("```")[2].partition("```")[0]
ROWS_DRAWN = re.findall(r"^ ((?:[\w./-]+, )*[\w./-]+)", DRAWN, re.MULTILINE)
PYTHON_ROWS = [row for row in ROWS_DRAWN if not row.startswith("crates/")]
CRATE_ROWS = [row for row in ROWS_DRAWN if row.startswith("crates/")]


def test_the_layers_are_drawn_as_they_are_kept() -> None:
    depth = {name: number for number, names in enumerate(LAYERS) for name in names}
    drawn = [[depth[name] for name in row.split(", ")] for row in PYTHON_ROWS]
    assert all(len(set(row)) == 1 for row in drawn), "a line is one layer"
    assert [row[0] for row in drawn] == sorted({row[0] for row in drawn}), "upper layers stand first"
    named = {name for row in PYTHON_ROWS for name in row.split(", ")}
    assert {name for name in depth if "." not in name} - named == {"__main__"}


def test_crates_depend_only_on_those_below() -> None:
    order = [row.removeprefix("crates/") for row in CRATE_ROWS]
    manifests = {path.parent.name: tomllib.loads(path.read_text()) for path in (ROOT / "crates").glob("*/Cargo.toml")}
    assert set(order) == set(manifests)
    for crate, manifest in manifests.items():
        for needed in manifest.get("dependencies", {}).keys() & set(order):
            assert order.index(needed) > order.index(crate), f"{crate} needs {needed}, which is drawn above it"


RUST = {str(path.relative_to(ROOT / "crates")): path.read_text() for path in (ROOT / "crates").glob("*/src/**/*.rs")}


def test_unsafe_stands_only_where_it_says() -> None:
    said = next(part for part in TEXT.split("\n\n") if part.startswith("`unsafe` stands in"))
    places = re.findall(r"`([\w./-]+)`", said)[1:]
    is_unsafe = re.compile(r"^[^/\n]*\bunsafe (?:\{|fn|impl|extern)", re.MULTILINE)
    unsafe = [path for path, text in RUST.items() if is_unsafe.search(text)]
    assert [path for path in unsafe if not any(f"/{place}" in f"/{path}" for place in places)] == []


def test_no_local_read_maps_a_file() -> None:
    reading = [path for path in RUST if not path.startswith("hyperslab-preload")]
    assert [path for path in reading if re.search(r"\bmmap\b|\bmemmap", RUST[path])] == []


def test_decisions_are_numbered_without_gaps_but_those_that_are_explained() -> None:
    notes = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [path.name[:4] for path in notes]
    assert len(numbers) == len(set(numbers)), "two notes have one number"
    text = "".join(path.read_text() for path in notes)
    missing = {f"{number:04}" for number in range(1, int(numbers[-1]) + 1)} - set(numbers)
    assert {number for number in missing if not re.search(rf"{number}[^.]* never written", text)} == set()
