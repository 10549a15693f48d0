"""Something that helps without rewriting, or that you should know of an array."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hyperslab.advise.price import Gain, Price

if TYPE_CHECKING:
    from hyperslab.advise.candidate import Candidate


@dataclass(frozen=True)
class Tip:
    """Something that helps without rewriting any data."""

    what: str
    call: str = ""
    price: Price = field(default_factory=lambda: Price.without("nobody asked what it would take"))
    gain: Gain | None = None
    candidate: Candidate | None = None  # None: other calls
    decoded: tuple[int, int] | None = None  # chunks that are decoded now, and then
    opens_once: bool = False  # whether the program opens the array once then, as it need not

    @property
    def said(self) -> str:
        """What to do, with the chunks that are decoded, as a sentence begins."""
        what = f"{self.what[:1].upper()}{self.what[1:]}"
        if self.decoded is None:
            return what
        now, then = self.decoded
        return f"{what}: {now:,} chunks were decoded, {then:,} would be"
