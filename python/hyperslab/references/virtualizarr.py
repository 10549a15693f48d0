"""A parser for VirtualiZarr: it makes virtual datasets of every format that hyperslab reads.

Use it as `virtualizarr.open_virtual_dataset(url, registry=registry, parser=HyperslabParser())`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.archive.far.remote import is_url
from hyperslab.archive.far.url_prefix import HTTP
from hyperslab.archive.opening import open
from hyperslab.archive.tree.group import Group
from hyperslab.errors import Refused, UsageError
from hyperslab.needed import missing
from hyperslab.references import zarr3
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.export import Document, Export

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array

MOST_CHUNKS = 1 << 27  # of one array: VirtualiZarr's manifests have an entry for each chunk, stored or missing
ESCAPED = re.compile(r"[#%?]")
OF_URLS = ("bucket", "container_name")  # settings of obstore's stores that the URL already contains


@dataclass(frozen=True)
class HyperslabParser:
    """A parser that VirtualiZarr calls with a URL and its registry of stores; it returns a `ManifestStore`.

    hyperslab reads the metadata. VirtualiZarr later reads the chunks through the registry's store.

    Parameters
    ----------
    group : str | None
        The group to use as the root.
    skip_variables : Iterable[str] | None
        Names of arrays to leave out.
    skip_unsupported : bool
        Leave out arrays that VirtualiZarr cannot express, instead of refusing the file: arrays with variable-length
        elements, with values in the metadata, or with codecs that numcodecs lacks.
    storage_options : Mapping[str, Any] | None
        How hyperslab reaches the URL, as for `open`. By default it uses the settings of the registry's store, except
        for credentials that the store gets from a function.
    """

    group: str | None = None
    skip_variables: Iterable[str] | None = None
    skip_unsupported: bool = False
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)

    def __call__(self, url: str, registry: Any) -> Any:
        """The arrays and groups of a file as a `virtualizarr.manifests.ManifestStore`.

        Raises
        ------
        Refused
            An array cannot be expressed; the message has the reason.
        UsageError
            There is no such group.
        ReadError
            The file cannot be read.
        """
        try:
            from virtualizarr.manifests import ManifestStore
        except ImportError as error:
            raise missing("virtualizarr") from error
        options = self.storage_options
        if options is None and is_url(url):
            options = _options_of(registry.resolve(url)[0], url)
        with open(url, storage_options=options) as opened:
            root = opened[self.group] if self.group else opened
            if not isinstance(root, Group):
                raise UsageError(f"{self.group} of {url} is an array, but VirtualiZarr opens groups: name its group")
            export = Export(_Manifests(), 0, self.skip_unsupported, frozenset(self.skip_variables or ()))
            items = dict(export.items({"": root}))
        return ManifestStore(_root(items), registry=registry)


class _Manifests:
    """Zarr 3 as far as VirtualiZarr's manifests can express it; they hold no chunks inline."""

    def group_documents(self, prefix: str, attributes: Mapping[str, Any]) -> dict[str, Document]:
        return zarr3.group_documents(prefix, attributes)

    def array_documents(
        self, path: str, array: Array, dimensions: list[str], inline_threshold: int
    ) -> tuple[dict[str, Document], ChunkTable]:
        documents, table = zarr3.array_documents(path, array, dimensions, inline_threshold)
        if table.inline:
            raise Refused("its values lie in the file's metadata, but VirtualiZarr can only refer to byte ranges")
        if table.chunk_count > MOST_CHUNKS:
            raise Refused(
                f"its grid has {table.chunk_count} chunks; VirtualiZarr keeps an entry for each, so "
                f"the limit is {MOST_CHUNKS}"
            )
        for used in table.used_paths():
            if "://" not in used and ESCAPED.search(used):
                raise Refused(f"VirtualiZarr cannot find files whose path contains #, % or ?: {used}")
        return documents, table


def _root(items: Mapping[str, Document | ChunkTable]) -> Any:
    """The root as a `ManifestGroup`, built from the deepest nodes upwards, because archives may be nested deeply."""
    from virtualizarr.manifests import ManifestArray, ManifestGroup
    from zarr.core.metadata.v3 import ArrayV3Metadata

    documents = {
        key.removesuffix("zarr.json").rstrip("/"): item for key, item in items.items() if isinstance(item, dict)
    }
    arrays: dict[str, dict[str, Any]] = defaultdict(dict)
    groups: dict[str, dict[str, Any]] = defaultdict(dict)
    for path in sorted(documents, key=lambda path: (path != "", path.count("/")), reverse=True):
        parent, _, name = path.rpartition("/")
        document, table = documents[path], items.get(path)
        if isinstance(table, ChunkTable):
            arrays[parent][name] = ManifestArray(ArrayV3Metadata.from_dict(document), _manifest(table))
        elif path:
            groups[parent][name] = ManifestGroup(arrays[path], groups[path], document["attributes"])
    return ManifestGroup(arrays[""], groups[""], documents[""]["attributes"])


def _manifest(table: ChunkTable) -> Any:
    from virtualizarr.manifests import ChunkManifest

    count = math.prod(table.grid_shape)
    paths = np.full(count, "", np.dtypes.StringDType())
    offsets, lengths = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    used = table.used_paths()
    urls = np.array([_url(path) if path in used else "" for path in table.paths], np.dtypes.StringDType())
    if len(table.positions):
        paths[table.positions] = urls[table.files]
    offsets[table.positions], lengths[table.positions] = table.offsets, table.lengths
    shape = table.grid_shape
    return ChunkManifest.from_arrays(
        paths=paths.reshape(shape), offsets=offsets.reshape(shape), lengths=lengths.reshape(shape), validate_paths=False
    )


def _url(path: str) -> str:
    """A local path with `file://` but without escapes, because VirtualiZarr takes it as the name of the file."""
    return path if "://" in path else f"file://{path}"


def _options_of(store: Any, url: str) -> dict[str, Any]:
    """The settings of an obstore store as storage options for `open`."""
    client = dict(getattr(store, "client_options", None) or {})
    headers = client.pop("default_headers", {})
    if url.partition("://")[0] in HTTP:
        return {"headers": {name: _text(value) for name, value in headers.items()}} if headers else {}
    config = {**dict(getattr(store, "config", None) or {}), **client}
    return {name: value for name, value in config.items() if name not in OF_URLS}


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
