"""`Verdict`: what measurements on this machine say about a published conclusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Verdict:
    """The verdict on one published conclusion, and one entry of verdicts.json."""

    id: str
    study: str
    conclusion: str
    published: str
    by_published_method: str
    by_fair_method: str
    verdict: Literal["holds", "reverses", "depends", "undecided"]
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The verdict with its reason, to be read as a sentence."""
        return f"{self.verdict}: {self.reason}" if self.reason else self.verdict
