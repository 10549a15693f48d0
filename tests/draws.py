"""How many examples hypothesis draws: a quarter of what a test names, or all of them with HYPERSLAB_DRAWS=new."""

from __future__ import annotations

import os


def few(count: int) -> int:
    """The examples to draw of `count`, which `HYPERSLAB_DRAWS=new` draws in full, and others each time."""
    return count if os.environ.get("HYPERSLAB_DRAWS") == "new" else max(5, count // 4)
