"""`Progress`: how work that takes longer says how far it is."""

from collections.abc import Callable
from typing import TypeAlias

# Called with what is worked on, how many parts are done, and how many there are (at most).
Progress: TypeAlias = Callable[[str, int, int], None]
