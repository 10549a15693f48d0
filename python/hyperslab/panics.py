"""Errors instead of panics: a library written in Rust may raise a `PanicException`, which is no `Exception`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hyperslab.errors import InternalError


@contextmanager
def panics_named(doing: str) -> Iterator[None]:
    """Turn a panic of a library into an error that says what it was to do.

    Raises
    ------
    InternalError
        The library panicked.
    """
    try:
        yield
    except BaseException as error:
        if not is_panic(error):
            raise
        raise InternalError(f"{doing}: a fault in the library: {error}; check the options, or report it") from error


def is_panic(error: BaseException) -> bool:
    """Whether an exception is a panic: each library has a class of its own, which nobody can import."""
    return type(error).__name__ == "PanicException" and not isinstance(error, Exception)
