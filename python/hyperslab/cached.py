"""`cached_property` without a lock, so that a forked child never waits for a thread that only its parent has."""

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 -- it replaces Python's
        """Python's own before 3.12 holds a lock while it computes, one for all objects of a class."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """The value, computed on first use; two threads may both compute it."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
