"""`Testimony`: what another reader of a file found, as `verify` hears it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

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
    silence: str | None = None  # why nothing was said of the other versions
    is_complete: bool = False

    def since(self, told: Testimony) -> dict[str, Any]:
        """What was found since it was told the last time; it is noted in `told`."""
        said = {
            "damages": self.damages[len(told.damages) :],
            "proved": self.proved[len(told.proved) :],
            "unproved": {name: why for name, why in self.unproved.items() if told.unproved.get(name) != why},
        }
        told.hear(said)
        return said

    def hear(self, said: Mapping[str, Any]) -> None:
        """Add what another process found."""
        self.damages += [(what, array, versions) for what, array, versions in said["damages"]]
        self.proved += said["proved"]
        self.unproved.update(said["unproved"])
        self.is_complete = said.get("is_complete", False)

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
