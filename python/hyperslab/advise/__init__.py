"""Which layout an array should have for the accesses that are made to it: searched, priced, and proved by running."""

from __future__ import annotations

import sys
from types import ModuleType

# `typing` takes longer to import than all that `hyperslab run` needs. Type checkers take this name for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature
    from typing import Any

    from hyperslab.advise.results import Advice


class _Room(ModuleType):
    """This package, which is called too: Python gives `hyperslab.advise` to the package as soon as anybody imports it.

    `hyperslab.advise(...)` is `answering.advise`, whose documentation and signature it has. Nothing is imported before.
    """

    def __call__(self, *arguments: Any, **options: Any) -> Advice:
        return _function()(*arguments, **options)

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return _function().__doc__

    @property
    def __signature__(self) -> Signature:
        from inspect import signature

        return signature(_function())


def _function() -> Callable[..., Advice]:
    from hyperslab.advise.answering import advise

    return advise


sys.modules[__name__].__class__ = _Room
