"""`Testimony`: what HDF5's own library says about versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hyperslab.errors import HyperslabError

FAULTS = (
    OSError,
    KeyError,
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    SystemError,
)


@dataclass
class Testimony:
    """What was seen: damage (what, array, versions); which versions are proved; and why the others are not."""

    damages: list[tuple[str, str | None, list[str] | None]] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)
    unproved: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, array: str | None = None, versions: Sequence[str] | None = None) -> None:
        """Report damage."""
        self.damages.append((what, array, None if versions is None else list(versions)))

    @contextmanager
    def heard(self, what: str, array: str | None = None, versions: Sequence[str] | None = None) -> Iterator[None]:
        """Report as damage what HDF5 cannot do."""
        try:
            yield
        except (*FAULTS, HyperslabError) as error:
            self.add(f"{what}: {type(error).__name__}: {error}", array, versions)
