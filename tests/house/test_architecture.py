"""ARCHITECTURE.md is two pages, and each noun of its table is defined in the file that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
