"""The names that you may have meant: the end of every message about a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

MOST_COMPARED = 10_000  # a file may have a million names, and comparing takes time
MOST_SHOWN = 20
# The dtypes that a wrong one may mean.
NUMBERS = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`; None if none is like it.

    Upper and lower case count as the same, and the last part of a path as its name: `tmp` is near `/ocean/temp`.
    """
    from difflib import get_close_matches  # takes 5 ms to import, and most commands need no such message

    folded: dict[str, str] = {}
    for one in islice(known, MOST_COMPARED):
        for form in (one, one.lstrip("/"), one.rpartition("/")[2]):
            folded.setdefault(form.casefold(), one)
    asked = name.casefold()
    for form in (asked, asked.lstrip("/"), asked.rpartition("/")[2]):
        found = get_close_matches(form, folded, n=1)
        if found:
            return folded[found[0]]
    return None


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'temp'?`, or nothing if no known name is like `name`."""
    found = nearest(name, known)
    return "" if found is None or found == name else f"; did you mean {found!r}?"


def meant_or_known(name: str, known: Iterable[str], none: str = "there are none") -> str:
    """`; did you mean 'temp'?`, or else the names that there are."""
    names = list(islice(known, MOST_COMPARED))
    more = ", …" if len(names) > MOST_SHOWN else ""
    there = f"there are {', '.join(map(repr, names[:MOST_SHOWN]))}{more}" if names else none
    return meant(name, names) or f"; {there}"


def meant_or_choose(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'temp'?`, or else the few names to choose from."""
    names = list(known)
    return meant(name, names) or f"; choose from {', '.join(names)}"
