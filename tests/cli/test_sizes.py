"""Sizes on the command line are read as people write them."""

from __future__ import annotations

import pytest

from hyperslab.cli.sizes import nbytes_of
from hyperslab.errors import UsageError


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("64MiB", 64 << 20),
        ("500 kB", 500_000),
        ("12", 12),
        ("2GiB", 2 << 30),
        ("1.5 mb", 1_500_000),
        ("3k", 3000),
        ("1Ti", 1 << 40),
        (None, None),
    ],
)
def test_a_size_is_read(text: str | None, nbytes: int | None) -> None:
    assert nbytes_of(text, "--memory") == nbytes


@pytest.mark.parametrize("text", ["lots", "-1", "9" * 400, "", "1 e3", "64 bits"])
def test_what_is_no_size_is_refused_with_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--memory"):
        nbytes_of(text, "--memory")
