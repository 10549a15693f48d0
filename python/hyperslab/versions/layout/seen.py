"""`SeenVersions`: the versions of a file as you see them. Often you need only the current one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hyperslab.archive.far.remote import Remote, SourceResolver
from hyperslab.archive.tree.group import Group
from hyperslab.errors import ReadError
from hyperslab.versions.layout import names as layout
from hyperslab.versions.layout.names import FIRST_VERSION, VERSIONS
from hyperslab.versions.layout.reading import check_given_up, parsed, stored_log, version_group, version_table
from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.table import VersionKey, VersionTable, data_version_of, group_of_versions
from hyperslab.versions.layout.version_group import VersionGroup


class SeenVersions:
    """The versions of a file. It reads the name of the current version at once, and the table of all versions only when
    you ask for it, because that takes longer the more versions there are.

    Parameters
    ----------
    path : str | Remote
        The file, local or remote.
    chunk_cache_nbytes : int
        Memory in bytes for the decoded chunks of each version.
    within : str
        The path of the group that holds the versions, with "/" at its end.
    is_lazy : bool
        Look up chunks only when an array is read. Use this only if nobody writes to the file without our journal.
    to_write : bool
        Whether you will add versions.
    settle : Callable[[], None]
        Called before the file is read.
    resolver : SourceResolver | None
        The files that it may lead to.

    Raises
    ------
    Unsupported
        The file has no versions, or its layout is newer than this release knows.
    """

    def __init__(
        self,
        path: str | Remote,
        chunk_cache_nbytes: int,
        within: str = "",
        *,
        is_lazy: bool = True,
        to_write: bool = False,
        settle: Callable[[], None] = lambda: None,
        resolver: SourceResolver | None = None,
    ) -> None:
        self._path, self._chunk_cache_nbytes, self._within = path, chunk_cache_nbytes, within
        self._is_lazy, self._to_write, self._settle = is_lazy, to_write, settle
        self._resolver = resolver
        self._groups: dict[str, VersionGroup] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look for versions committed since. Groups that you already have stay as they are."""
        self._settle()
        root = parsed(self._path, 0, (f"{self._within}{VERSIONS}",), resolver=self._resolver)[f"/{self._within}"]
        assert isinstance(root, Group)
        said = group_of_versions(root).attrs
        layout.check_data_version(data_version_of(said), root.filename, to_write=self._to_write)
        self._current = said.get("current_version")  # as the file says; it may not be committed
        self._table: VersionTable | None = None
        self._refs: Refs | None = None
        self._groups.clear()

    def forget_groups(self) -> None:
        """Let go of the parsed versions."""
        self._groups.clear()

    @property
    def said(self) -> VersionTable:
        """All versions whose attributes say that they were committed."""
        self._settle()
        return version_table(self._path, self._within, self._resolver)

    @property
    def table(self) -> VersionTable:
        """All versions. The code that changes them sets this.

        Raises
        ------
        DamagedFile
            A version that was committed says that it was not, or its attribute cannot be read.
        """
        if self._table is None:
            if self._refs is None and not isinstance(self._path, Remote):
                self.refs  # noqa: B018 -- older than the table: what is committed between the two is in neither, or here
            said = self.said
            check_given_up(self._path, said, self._within, self._resolver)
            self._table = said.changed(None, self._current) if self._current in said else said
        return self._table

    @table.setter
    def table(self, table: VersionTable) -> None:
        self._table = table

    @property
    def refs(self) -> Refs:
        """The branches and tags. The code that changes them sets this."""
        if self._refs is None:
            self._settle()
            self._refs = Refs.of(stored_log(self._path, self._within, self._resolver))
        return self._refs

    @refs.setter
    def refs(self, refs: Refs | None) -> None:
        self._refs = refs

    def find(self, key: VersionKey) -> str:
        """The name of the version that a key means, which may also be the name of a branch or a tag.

        Raises
        ------
        KeyError
            The version does not exist.
        IndexError
            The current version has fewer ancestors.
        """
        named = self.refs.find(key, self.table) if isinstance(key, str) and key not in self.table else None
        return self.table.find(key) if named is None else named

    @property
    def current(self) -> str | None:
        """The name of the current version, or None if there is none."""
        if self._table is None and self._committed(self._current) is not None:
            return str(self._current)
        return self.table.current

    def __getitem__(self, key: VersionKey) -> VersionGroup:
        """The group of a version.

        Raises
        ------
        KeyError
            The version does not exist.
        IndexError
            The current version has fewer ancestors.
        """
        if self._table is None:
            is_current = key is None or (type(key) is int and key == 0)
            group = self._committed(self._current if is_current else key)
            if group is not None:
                return group
        name = self.find(key)
        if name not in self._groups:
            self._groups[name] = self._opened(name)
        return self._groups[name]

    def _committed(self, name: object) -> VersionGroup | None:
        """The group of a version by name; None if only the table can tell whether it exists and was committed."""
        if not isinstance(name, str) or name == FIRST_VERSION:
            return None
        if name not in self._groups:
            try:
                group = self._opened(name)
                if "prev_version" not in group.attrs or group.attrs.get("committed") is not np.True_:
                    return None
            except (KeyError, ReadError):
                return None
            self._groups[name] = group
        return self._groups[name]

    def _opened(self, name: str) -> VersionGroup:
        self._settle()
        cache_nbytes, resolver = self._chunk_cache_nbytes, self._resolver
        group = version_group(self._path, name, cache_nbytes, self._within, is_lazy=self._is_lazy, resolver=resolver)
        return VersionGroup(group)


def opened_version(
    location: str | Remote, version: VersionKey, chunk_cache_nbytes: int, resolver: SourceResolver | None = None
) -> Group:
    """The group of one version, for `hyperslab.open(..., version=...)`."""
    return SeenVersions(location, chunk_cache_nbytes, resolver=resolver)[version]
