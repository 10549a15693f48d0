"""`Rewritable`: a file with versions that can be written again, to delete some or to store arrays in another way."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from hyperslab.errors import UsageError
from hyperslab.versions.inspect.inspected import Inspected

if TYPE_CHECKING:
    from hyperslab.progress import Progress
    from hyperslab.versions.layout.refs import Branch, Tag
    from hyperslab.versions.rewrite.expiry import Expiry
    from hyperslab.versions.rewrite.rewriting import RewritePlan


class Rewritable(Inspected):
    """A file with versions that can be written again; `VersionedFile` is one."""

    _file: Any
    _owned: Any

    def _writable(self) -> None:
        """Refuse to change a file that cannot be written."""
        raise NotImplementedError

    def _rewrite(self, plan: Callable[[], RewritePlan], repack: bool, progress: Progress | None = None) -> None:
        """Write versions again: all of them, or none."""
        raise NotImplementedError

    @property
    def branches(self) -> dict[str, Branch]:
        """The branches by name."""
        raise NotImplementedError

    @property
    def tags(self) -> dict[str, Tag]:
        """The tags by name."""
        raise NotImplementedError

    def _check_refs_readable(self) -> None:
        """Refuse what depends on branches and tags if they cannot all be read."""
        raise NotImplementedError

    def _check_untagged(self, names: Sequence[Any]) -> None:
        """Refuse to delete versions that have tags."""
        raise NotImplementedError

    def delete_versions(
        self,
        names: str | Iterable[str],
        *,
        repack: bool = True,
        force: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Delete versions and all that only they hold. The parent of a deleted version takes over its children.

        Either all of this happens or nothing, as with a commit. Readers keep what they have open.

        Parameters
        ----------
        names : str or iterable of str
            The names of the versions.
        repack : bool
            Whether to write the remaining versions to a new file, which then replaces this one. The new file is as
            short as possible and keeps nothing of the deleted versions, but there must be room for both files. If
            False, only the arrays that lose chunks are written again, at the end of the file: it grows, because HDF5
            forgets which space is free. An `h5py.File` that you passed in is never repacked.
        force : bool
            Whether to delete versions that have tags, too. The tags stay, and say that their versions were deleted.
        progress : callable, optional
            Called with what is written, the number of arrays and versions written so far, and of all.

        Raises
        ------
        ValueError
            A version does not exist.
        UsageError
            A version has a tag.
        DamagedFile
            A version that stays cannot be read.
        """
        from hyperslab.versions.rewrite.deletion import deletion

        named = [names] if isinstance(names, str | bytes) or not isinstance(names, Iterable) else list(names)
        self._writable()
        if not force:
            self._check_untagged(named)
        self._rewrite(lambda: deletion(self._file.file, named), repack, progress)

    def expire(
        self,
        *,
        keep_last: int | None = None,
        older_than: dt.timedelta | None = None,
        thin: str | None = None,
        keep_tags: bool = True,
        dry_run: bool = False,
        now: dt.datetime | None = None,
        repack: bool = True,
        progress: Progress | None = None,
    ) -> Expiry:
        """Delete versions by their age and number, all in one change.

        A version goes if all that you give lets it go. Heads of branches, the current version and, unless you say
        otherwise, tagged versions always stay. The parent of a version that goes takes over its children.

        Parameters
        ----------
        keep_last : int, optional
            The last versions of each branch stay, so many; and so do those that lead to a version without children.
        older_than : datetime.timedelta, optional
            Younger versions stay.
        thin : str, optional
            How many of the versions in each period stay, for example `1/day`: the last of each branch. Periods are an
            hour, day, week, month or year, in UTC.
        keep_tags : bool
            Whether to keep versions that have tags. The tags of versions that go stay, and say that they are gone.
        dry_run : bool
            Only show which versions would be deleted, and how many bytes only they use.
        now : datetime.datetime, optional
            The time from which ages count, in UTC; by default now.
        repack, progress
            As in `delete_versions`.

        Returns
        -------
        Expiry
            The versions that are gone, or would go; why the others stay; and the bytes.

        Raises
        ------
        ValueError
            Nothing says which versions may go, or it makes no sense.
        DamagedFile
            A version that stays, or the list of branches and tags, cannot be read.
        """
        from hyperslab.versions.layout.names import as_datetime, parsed_time, stored_time
        from hyperslab.versions.rewrite.deletion import deletion
        from hyperslab.versions.rewrite.expiry import Rule, Thinning, expiry

        rule = Rule(keep_last, older_than, None if thin is None else Thinning.of(thin), keep_tags)
        at = parsed_time(stored_time(None)) if now is None else as_datetime(now)
        if not dry_run:
            self._writable()
        self._check_whole()
        self._check_refs_readable()
        kept = rule.kept(self.table, self.branches, self.tags.values(), at)
        found = expiry(self.table, kept, at, progress if dry_run else None)
        if found.names and not dry_run:
            known = None if self._owned is None else self.table  # nobody else writes to a file that is ours
            self._rewrite(lambda: deletion(self._file.file, found.names, known), repack, progress)
        return found

    def modify_metadata(
        self,
        array: str,
        *,
        chunks: int | tuple[int, ...] | Literal[True] | None = None,
        dtype: Any = None,
        fillvalue: Any = None,
        repack: bool = True,
        **codecs: Any,
    ) -> None:
        """Change how an array is stored, in all versions. Either all of this happens or nothing, as with a commit.

        Parameters
        ----------
        array : str
            The path of the array.
        chunks : int, tuple of int or True, optional
            The new chunk shape in elements; True is the default of an array with one axis, 4096.
        dtype : dtype, optional
            The new dtype; all elements are cast to it.
        fillvalue : scalar, optional
            The new fill value; elements equal to the old fill value become the new one.
        repack : bool
            As in `delete_versions`.
        **codecs : Any
            `compression`, `compression_opts`, `shuffle`, `fletcher32` and `scaleoffset`, as h5py has them; None turns
            one off. Options that you leave out stay as they are.

        Raises
        ------
        KeyError
            The array does not exist.
        TypeError
            An option does not exist, or the elements cannot be cast to the dtype.
        ValueError
            The options contradict each other.
        """
        from hyperslab.versions.rewrite.recoding import modification

        asked = {"chunks": chunks, "dtype": dtype, "fillvalue": fillvalue}
        self._rewrite(lambda: modification(self._file.file, array, asked, codecs), repack)

    def repack(self, *, progress: Progress | None = None) -> None:
        """Write this file again, as short as possible. The file must have been opened by its path, for writing."""
        from hyperslab.versions.rewrite.deletion import nothing

        self._writable()
        if self._owned is None:
            raise UsageError(f"{self.path} was opened by h5py: open it by its path to repack it")
        self._rewrite(lambda: nothing(self._file.file), True, progress)
