"""The environment in which the dynamic linker loads our library into programs."""

from __future__ import annotations

TYPE_CHECKING = False  # `hyperslab run` imports this before it starts the program
if TYPE_CHECKING:
    from collections.abc import Mapping

# AddressSanitizer ends programs in which another library is loaded before its own. Nothing depends on it here.
_SANITIZER, _ANY_ORDER = "ASAN_OPTIONS", "verify_asan_link_order=0"


def preloading(environment: Mapping[str, str], path: str) -> dict[str, str]:
    """The variables that load the library at a path first, and others that were named already after it."""
    return {
        "LD_PRELOAD": ":".join(filter(None, [path, environment.get("LD_PRELOAD")])),
        _SANITIZER: ":".join(filter(None, [environment.get(_SANITIZER), _ANY_ORDER])),
    }


def users_folders(folder: str) -> list[str]:
    """The folder, and those inside it of users that processes of root became: the library makes them."""
    import os

    try:
        names = sorted(name for name in os.listdir(folder) if name[:1] == "u" and name[1:].isdigit())  # noqa: PTH208
    except OSError:
        return [folder]
    inside = [os.path.join(folder, name) for name in names]  # noqa: PTH118, pathlib takes long to import
    return [folder, *(path for path in inside if os.path.isdir(path) and not os.path.islink(path))]  # noqa: PTH112, PTH114


def content(path: str, most_nbytes: int = -1) -> bytes:
    """What a process left in a file. It may be another user's, so it is only read if it is a file.

    Raises
    ------
    OSError
        It cannot be read, or is something else.
    """
    import os
    import stat

    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no file")
        return file.read(most_nbytes)
