"""Whether a file is as long as its own header says."""

from __future__ import annotations

from hyperslab.archive.tree.group import Group
from hyperslab.errors import DamagedFile


def lost(root: Group) -> str:
    """A sentence that says how much shorter the file is than its own header says."""
    said = f"the file is {root.lost_nbytes} bytes shorter than its header says"
    return f"{said}: perhaps a download was cut off, or the program that wrote it never closed it"


def check_whole(root: Group) -> None:
    """Refuse a file that was cut off, for whoever speaks of all of it.

    Arrays at the end may not even be there by name, so nobody would miss them.

    Raises
    ------
    DamagedFile
        The file is shorter than its header says.
    """
    if root.lost_nbytes:
        raise DamagedFile(f"{root.filename}: {lost(root)}; get a good copy of it")
