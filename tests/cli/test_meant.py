"""A message about an unknown name says which one you may have meant."""

from __future__ import annotations

import pytest

from hyperslab.meant import meant, meant_or_choose, meant_or_known, nearest


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("tmp", ["temp", "salt"], "temp"),
        ("TEMP", ["temp", "salt"], "temp"),
        ("temp", ["Temp", "salt"], "Temp"),
        ("tmp", ["/ocean/temp", "/ocean/salt"], "/ocean/temp"),
        ("/ocen/temp", ["/ocean/temp", "/ocean/salt"], "/ocean/temp"),
        ("x", ["temp", "salt"], None),
        ("temp", [], None),
    ],
)
def test_nearest(name: str, known: list[str], found: str | None) -> None:
    assert nearest(name, known) == found


def test_words() -> None:
    assert meant("tmp", ["temp"]) == "; did you mean 'temp'?"
    assert meant("x", ["temp"]) == ""
    assert meant_or_known("x", ["temp", "salt"]) == "; there are 'temp', 'salt'"
    assert meant_or_known("x", []) == "; there are none"
    assert meant_or_choose("tmp", ["temp"]) == "; did you mean 'temp'?"
    assert meant_or_choose("x", ["temp", "salt"]) == "; choose from temp, salt"


def test_a_million_names_take_bounded_time() -> None:
    assert nearest("tmp", (f"n{number}" for number in range(10**6))) is None
