"""What an error of the disk means for a change: whether it is committed."""

from __future__ import annotations

from hyperslab.errors import HyperslabError

# By whether the change is committed, and whether the disk kept it from being completed or undone.
SAID = {
    (True, False): "is committed all the same",
    (False, False): "is not committed: the file is as it was before; repeat the change when the disk works",
    (True, True): "is committed in the journal beside the file, but not yet in the file, because the disk still fails: "
    "use this object again, or open the file again, when the disk works",
    (False, True): "may be committed or not, because the disk still fails: use this object again, or open the file "
    "again, when the disk works, and look",
}


def told(error: BaseException, what: str, *, is_committed: bool, is_open: bool) -> OSError | None:
    """The same error, with a message that also says whether a change is committed; None for errors of other kinds.

    Parameters
    ----------
    error : BaseException
        What went wrong.
    what : str
        What was to be committed.
    is_committed : bool
        Whether its journal was complete.
    is_open : bool
        Whether it has still to be completed or undone.
    """
    if not isinstance(error, OSError) or isinstance(error, HyperslabError):
        return None
    said = f"{what} {SAID[is_committed, is_open]}"
    return OSError(f"{error}; {said}") if error.errno is None else OSError(error.errno, f"{error.strerror}; {said}")
