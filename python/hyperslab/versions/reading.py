"""Versions as groups of an archive, read by the engine: a version is one more table of chunks.

Only what a version needs is parsed. What is parsed stays good while others commit: chunks are never overwritten.
"""

from __future__ import annotations

from hyperslab.archive.tree import CHUNK_CACHE_NBYTES, Group, OpenFile
from hyperslab.errors import DamagedFile
from hyperslab.versions.layout import DATA, VERSIONS
from hyperslab.versions.table import VersionKey, VersionTable


def version_table(path: str) -> VersionTable:
    """All versions of a file.

    Raises:
        Unsupported: It has none.
    """
    return VersionTable.of(OpenFile(path, 0, (f"{VERSIONS}/*",)).root)


def version_group(path: str, name: str, chunk_cache_nbytes: int = CHUNK_CACHE_NBYTES) -> Group:
    """The group of a version, with its arrays.

    Raises:
        DamagedFile: It is not there.
    """
    patterns = (f"{VERSIONS}/{name}/**", f"{DATA}/**/raw_data")
    group = OpenFile(path, chunk_cache_nbytes, patterns).root[f"{VERSIONS}/{name}"]
    if not isinstance(group, Group):
        raise DamagedFile(f"{path}: version {name!r} is no group")
    return group


def opened_version(path: str, version: VersionKey, chunk_cache_nbytes: int) -> Group:
    """What `hyperslab.open` gives when it is asked for a version."""
    return version_group(path, version_table(path).find(version), chunk_cache_nbytes)
