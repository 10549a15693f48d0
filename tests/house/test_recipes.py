"""CONTRIBUTING.md's recipes name every file that they need: followed here as far as a test can."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hyperslab._core import url_parts
from hyperslab.archive.far import remote, store_options
from hyperslab.archive.far.url_prefix import AZURE, GCS, HTTP, S3
from hyperslab.archive.given.foreign_stores import OBSTORE_URLS

ROOT = Path(__file__).parents[2]
STORES = (HTTP, S3, GCS, AZURE)
# A file that tells stores apart names the schemes of the last one, or the constant that holds them.
TELLS_APART = re.compile(r"\bAZURE\b|\"az\"")


def test_the_recipe_for_a_store_names_every_file_that_tells_stores_apart() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| a kind of store"))
    named = set(re.findall(r"`(\w+\.(?:py|rs))`", row))
    sources = [*(ROOT / "python" / "hyperslab").rglob("*.py"), *(ROOT / "crates").glob("*/src/**/*.rs")]
    assert {path.name for path in sources if TELLS_APART.search(path.read_text())} == named


@pytest.mark.parametrize("schemes", STORES, ids=lambda schemes: schemes[0])
def test_every_table_knows_every_scheme_of_a_store(schemes: tuple[str, ...]) -> None:
    assert set(remote.SCHEMES) == {scheme for each in STORES for scheme in each}
    assert schemes in store_options.NAMES, "the names of its options, for misspelt ones"
    kinds = set()
    for scheme in schemes:
        assert scheme in store_options._TRANSLATIONS
        assert scheme in remote._KINDS
        parsed = url_parts(f"{scheme}://server/a/b")
        assert parsed is not None, "the compiled part does not know it"
        kinds.add(parsed[0])
    assert len(kinds) == (2 if schemes == HTTP else 1), "one store has one kind, whatever its URL is called"


def test_stores_of_obstore_are_stores_of_ours() -> None:
    assert {scheme for scheme, _ in OBSTORE_URLS.values()} == {S3[0], GCS[0], AZURE[0]}
