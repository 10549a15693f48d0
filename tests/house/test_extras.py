"""Messages about missing libraries name extras that pyproject.toml has, and that bring these libraries."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from hyperslab import needed

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# Distributions whose modules have other names.
MODULES = {"obspec-utils": "obspec_utils", "iris-sample-data": "iris_sample_data", "versioned-hdf5": "versioned_hdf5"}
NOT_IMPORTED = {"maturin", "sp-repo-review", "pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "ruff", "mypy",
                "types-PyYAML", "flask", "flask-cors", "mkdocs-material", "cmip7-repack"}  # fmt: skip


def libraries(extra: str) -> set[str]:
    """What an extra installs, by the names of modules."""
    found: set[str] = set()
    for requirement in EXTRAS[extra]:
        name, asked = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement).groups()  # type: ignore[union-attr]
        if name == "hyperslab":
            found |= set().union(*(libraries(other) for other in asked.split(",")))
        else:
            found |= {MODULES.get(name, name)} | ({"distributed"} if asked == "distributed" else set())
    return found


@pytest.mark.parametrize("extra", needed.EXTRAS)
def test_an_extra_brings_what_messages_say(extra: str) -> None:
    assert set(needed.EXTRAS[extra]) <= libraries(extra)


@pytest.mark.parametrize("extra", ["virtualizarr", "report"])
def test_references_in_parquet_need_nothing_beside_these_extras(extra: str) -> None:
    assert "pyarrow" in libraries(extra)
    said = (ROOT / "docs" / "references.md").read_text().replace("\n", " ")
    assert re.search(rf"Parquet needs pyarrow, which [^.]*`hyperslab\[{extra}\]`", said)


def test_every_optional_library_has_its_extra() -> None:
    optional = set().union(*map(libraries, EXTRAS)) - NOT_IMPORTED
    assert optional == set(needed.EXTRA_OF)


def test_gpl_and_lgpl_are_in_no_other_extra() -> None:
    for library, own in {"fitsio": "fitsio-gpl", "hidefix": "hidefix-lgpl"}.items():
        assert [extra for extra in EXTRAS if library in libraries(extra)] == [own]
        assert "GPL" in needed.advice(library)


def test_the_page_on_installing_names_every_extra_of_users() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    named = set(re.findall(r"`hyperslab\[([\w-]+)\]`", text))
    assert named == set(EXTRAS) - {"benchmarks", "demo", "docs", "dev"}


def test_one_version_of_rust_is_named() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    for manifest in (ROOT / "crates").glob("*/Cargo.toml"):
        assert tomllib.loads(manifest.read_text())["package"]["rust-version"] == {"workspace": True}, manifest
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "docs/install.md")]
    named = {page.name: set(re.findall(r"Rust (\d+\.\d+)", page.read_text())) for page in pages}
    assert named["README.md"] == named["Makefile"] == named["install.md"] == {version}
    assert named["CONTRIBUTING.md"] <= {version}


def test_only_pip_commands_of_one_module_are_written() -> None:
    """Nothing else in the package writes `pip install` with a name that may not exist."""
    found = [
        f"{path.name}: {name}"
        for path in (ROOT / "python").rglob("*.py")
        for name in re.findall(r"hyperslab\[([\w,-]+)\]", path.read_text())
        if not set(name.split(",")) <= set(EXTRAS)
    ]
    assert not found


def test_what_is_missing_in_several_extras() -> None:
    assert needed.advice("h5py", "pyarrow") == "pip install 'hyperslab[hdf5,report]'"
    assert needed.advice("nosuch") == "pip install nosuch"
    assert "scheduler= needs distributed: pip install 'hyperslab[dask]'" in str(
        needed.missing("distributed", "scheduler=")
    )
