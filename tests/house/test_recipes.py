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
    engine = (ROOT / "crates/hyperslab-engine/src/stores/remote/url_parts.rs").read_text()
    listed = re.search(r"URL_SCHEMES: [^=]*=\s*\[([^]]*)\]", engine)
    assert listed is not None
    assert set(re.findall(r'"(\w+)"', listed[1])) == set(remote.SCHEMES), "programs under `run` open them too"
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


CODECS = ROOT / "crates" / "hyperslab-engine" / "src" / "codecs"
CODEC_TABLE = ROOT / "crates" / "hyperslab-core" / "src" / "array" / "codec_table.rs"
CODEC_LINE = re.compile(r'^ {16}(\w+) "[\w-]+" \{(.*)\}$', re.MULTILINE)


def test_a_codec_of_bytes_is_one_file_and_one_line() -> None:
    """What the recipe says: no other source names the file, but for codecs that are also inside others or written."""
    lines = dict(CODEC_LINE.findall(CODEC_TABLE.read_text()))
    assert len(lines) > 15
    for file in lines:
        assert "fn decode(coded: &Coded<" in (CODECS / f"{file}.rs").read_text(), file
    sources = [path for path in (ROOT / "crates").glob("*/src/**/*.rs") if path != CODEC_TABLE]
    texts = {path.stem: path.read_text().partition("#[cfg(test)]")[0] for path in sources}
    for file in ("blosc2", "packbits", "scaleoffset", "nbit"):  # neither inside others nor written
        users = {stem for stem, text in texts.items() if re.search(rf"\b{file}::|\bmod {file}\b|known::{file}\b", text)}
        assert users == {"known_codecs"}, (file, users)  # which lists those that indexes of versions 1 and 2 had


def test_a_number_of_a_filter_stands_once() -> None:
    numbers = {int(number) for number in re.findall(r"hdf5: (\d+)", CODEC_TABLE.read_text())}
    plugins = "|".join(str(number) for number in sorted(numbers) if number > 300)
    parsers = [*(ROOT / "crates" / "hyperslab-parsers" / "src").rglob("*.rs"), *CODECS.glob("*.rs")]
    said = [path for path in parsers if "tests" not in path.stem and re.search(rf"\b({plugins})\b", _code(path))]
    assert said == []
    assert not re.search(rf"\b({plugins})\b", _python_code(ROOT / "python/hyperslab/storage/table.py"))


def _code(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text().partition("#[cfg(test)]")[0])


def _python_code(path: Path) -> str:
    return re.sub(r'"""[\s\S]*?"""|"[^"\n]*"|#.*', "", path.read_text())
