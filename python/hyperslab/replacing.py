"""Files that are there whole or not at all: written beside their place, brought to the device, then renamed.

What is at the place decides. A regular file is replaced, and the new one gets its permissions; a link is followed, and
stays. A pipe, a terminal or a character device (`/dev/stdout`, `/dev/null`) is written to when all is ready; a disk, or
a folder that holds something else, is refused.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hyperslab.errors import NoSpace, UsageError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MOST_LINKS = 40
ZEROS = bytes(1 << 20)


@contextmanager
def replacing(target: Path, is_folder: bool = False, is_synced: bool = True) -> Iterator[Path]:
    """A path to write to, which takes the target's place when the context ends well, and goes when it does not.

    What is not synced may be torn by a crash of the machine: good where that would be noticed, and made again.

    Raises:
        UsageError: There is no folder to write to, or what is in the way is not to be replaced.
        NoSpace: The disk is full; what was there before is there still.
    """
    place = _followed(target)
    is_stream = _is_stream(place)
    if not is_stream:
        _check(target, place, is_folder)
    elif is_folder:
        raise UsageError(f"{target} is no place for a folder: choose another name")
    try:
        # A folder of our own, so that no file of anybody else has the name that we write to.
        own = Path(tempfile.mkdtemp(prefix=".hyperslab-", suffix=".new", dir=None if is_stream else place.parent))
    except OSError as error:
        _fail(target, error)
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error
    try:
        beside = own / place.name
        yield beside
        if is_stream:
            _copy(beside, place)
            return
        if is_synced:
            _sync(beside)
        _take_place(beside, place, own)
        if is_synced:
            _sync_one(place.parent)
    except OSError as error:
        _fail(target, error)
        raise
    finally:
        shutil.rmtree(own, ignore_errors=True)


def replace_with(target: Path, content: str | bytes) -> None:
    """Give a file a new content: it holds either what it held before, or all of this."""
    with replacing(target) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def allocate(path: Path, start: int) -> None:
    """Have a file take the disk that it needs from a place on, now: once it is mapped, only a signal would tell.

    Raises:
        OSError: The disk has not so much.
    """
    with path.open("r+b") as file:
        missing = file.seek(0, os.SEEK_END) - start
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), start, missing)
            return
        file.seek(start)
        while missing > 0:  # macOS
            missing -= file.write(ZEROS[:missing])


def _followed(target: Path) -> Path:
    """Where links lead, but not those that stand for what a process has open."""
    place = target.absolute()
    for _ in range(MOST_LINKS):
        folder = Path(os.path.realpath(place.parent))
        place = folder / place.name
        if not place.is_symlink() or _is_of_process(folder):
            return place
        place = folder / place.readlink()
    raise UsageError(f"{target} is a link that leads in a circle: choose another name")


def _is_of_process(folder: Path) -> bool:
    return folder.parts[:2] == ("/", "proc")


def _is_stream(place: Path) -> bool:
    if _is_of_process(place.parent):
        return place.exists()
    try:
        mode = place.stat().st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise UsageError(f"{place} is a {'disk' if stat.S_ISBLK(mode) else 'socket'}, no file: choose another name")
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _check(target: Path, place: Path, is_folder: bool) -> None:
    if not place.parent.is_dir():
        raise UsageError(f"there is no folder {place.parent} to write {place.name} to")
    if place.is_dir() and not (is_folder and (place / ".zmetadata").is_file()):
        raise UsageError(f"{target} is a folder that holds something else: choose another name")
    if is_folder and place.is_file():
        raise UsageError(f"{target} is a file: remove it, or choose another name")
    if place.exists() and not os.access(place, os.W_OK):
        raise UsageError(f"{target} is protected from writing: remove it, or choose another name")


def _fail(target: Path, error: OSError) -> None:
    if error.errno is not None and error.errno in FULL:
        kept = "; what was there before stays" if target.is_file() else ""
        raise NoSpace(
            f"{target}: {error.strerror}: nothing was written{kept}; make room, or choose another disk"
        ) from error


def _copy(written: Path, stream: Path) -> None:
    # Appended, never from the start: the stream may be a file that the shell has open as `>> file`.
    with written.open("rb") as source, open(os.open(stream, os.O_WRONLY | os.O_APPEND), "wb") as opened:
        shutil.copyfileobj(source, opened)


def _take_place(beside: Path, place: Path, own: Path) -> None:
    if not place.is_dir():
        if place.exists():
            _give_permissions(place, beside)
        beside.replace(place)
        return
    old = own / f"{place.name}.old"  # a folder cannot take another's place at once
    place.rename(old)
    try:
        beside.rename(place)
    except BaseException:
        old.rename(place)
        raise


def _give_permissions(old: Path, new: Path) -> None:
    known = old.stat()
    with suppress(OSError):  # only root gives files away
        os.chown(new, known.st_uid, known.st_gid)
    with suppress(OSError):  # some file systems have no permissions
        new.chmod(stat.S_IMODE(known.st_mode))


def _sync(path: Path) -> None:
    for inner in sorted(path.rglob("*"), reverse=True) if path.is_dir() else []:
        _sync_one(inner)
    _sync_one(path)


def _sync_one(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError:
        if not path.is_dir():  # some file systems sync no folders
            raise
    finally:
        os.close(number)
