"""`Progress`: the callback that long-running work reports to."""

from collections.abc import Callable
from typing import TypeAlias

# Called with the name of the present item, the number of parts that are done, and the (largest possible) number of all.
Progress: TypeAlias = Callable[[str, int, int], None]
