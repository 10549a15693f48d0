"""kerchunk's references that your program already has: a dict, fsspec's mapper, or its file system `reference://`.

hyperslab makes its own requests for the files that it can reach. fsspec reads files that only it can read, such as
those of `memory://`, when you open the references, at most `MOST_NBYTES` in total.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyperslab._core import GivenFile
from hyperslab.archive.far.remote import Remote, is_url, shown
from hyperslab.archive.given.files import Given
from hyperslab.archive.given.keys import MOST_NBYTES
from hyperslab.errors import Unsupported, UsageError

# The options of fsspec's `reference://` and kerchunk's engine; `remote_options` has the options for the files.
WORDS = frozenset((
    "fo", "target", "ref_storage_args", "target_protocol", "target_options", "remote_protocol", "remote_options", "fs",
    "template_overrides", "simple_templates", "max_gap", "max_block", "cache_size", "lazy", "asynchronous",
))  # fmt: skip
METADATA = (".zgroup", ".zarray", ".zattrs", ".zmetadata", "zarr.json")


class GivenReferences(Given):
    """References in memory, in the form of kerchunk's JSON.

    Parameters
    ----------
    document : Mapping[str, Any]
        The references.
    options : Mapping[str, Any] or None
        Storage options for the URLs that the references name.
    fs : fsspec.AbstractFileSystem or None
        The file system `reference://` that reads the files that hyperslab cannot reach.
    """

    name: str
    options: dict[str, Any]

    takes_options = True

    def __init__(self, document: Mapping[str, Any], options: Mapping[str, Any] | None = None, fs: Any = None) -> None:
        self.name, self._document, self.options = "<references>", document, dict(options or {})
        self._fs = fs

    @property
    def asks_fsspec(self) -> bool:
        """Whether fsspec reads some of the files. These are not checked against `allowed`."""
        return self._fs is not None

    def file(self) -> GivenFile:
        """Return the object through which the Rust core reads the references."""
        document = self._document if self._fs is None else _read_here(self._fs)
        text = json.dumps(document, default=_inline).encode()
        return GivenFile.of_bytes(self.name, hashlib.blake2b(text, digest_size=16).hexdigest(), text)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._fs is not None:
            said = "references to files that only fsspec can read cannot be pickled"
            raise UsageError(f"{said}: open them in each process")
        return GivenReferences, (self._document,)


def are_references(source: object) -> bool:
    """Whether `source` is a dict of references, or fsspec's mapper that looks them up in Parquet."""
    return isinstance(source, dict) or _is_lazy(source)


def _is_lazy(source: object) -> bool:
    return type(source).__name__ == "LazyReferenceMapper" and type(source).__module__.startswith("fsspec.")


def is_reference_file_system(source: object) -> bool:
    """Whether `source` is fsspec's file system `reference://`."""
    return any(kind.__name__ == "ReferenceFileSystem" for kind in type(source).__mro__)


def named_by_options(path: Any, options: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]] | None:
    """Interpret a path and options as those of fsspec's `reference://`.

    Returns
    -------
    tuple or None
        The references, as an object or their path, and the remaining options; None if the options are others.
    """
    if not isinstance(path, str | os.PathLike):
        return None
    path = os.fspath(path)
    if path.rstrip("/") == "reference:" and "fo" in options:
        return options["fo"], {"remote_protocol": None, **{name: options[name] for name in options if name != "fo"}}
    given = ("remote_protocol", "remote_options", "target_options", "target_protocol")
    return (path, options) if any(name in options for name in given) else None


def location_of_references(source: Any, options: Mapping[str, Any]) -> Remote | GivenReferences:
    """Find out how to open references.

    Parameters
    ----------
    source : dict, fsspec's mapper, str or PathLike
        The references, or their path or URL.
    options : Mapping[str, Any]
        Options for the files; or options of `reference://`, in which `remote_options` has those for the files.

    Returns
    -------
    Remote or GivenReferences
        The URL of the references with the options for their files, or the references themselves.

    Raises
    ------
    UsageError
        `source` does not contain references.
    """
    words = {name: value for name, value in options.items() if name in WORDS}
    own = {**(words.get("remote_options") or {}), **{name: options[name] for name in options if name not in WORDS}}
    kind = words.get("remote_protocol")
    if isinstance(source, str | os.PathLike):
        source = os.fspath(source)
        if is_url(source):
            return Remote(source, {**(words.get("target_options") or {}), **own})
        if _is_ours(words) and "://" not in source and "::" not in source:
            return Remote(Path(source).absolute().as_uri(), own)
    if isinstance(source, dict):
        _check(source)
        if _is_ours(words) and all(map(_is_reachable, _names(source))):
            return GivenReferences(_with_protocol(source, kind), own)
    import fsspec

    try:
        fs = fsspec.filesystem("reference", fo=source, **words, skip_instance_cache=True)
    except ValueError as error:
        raise UsageError(f"fsspec cannot open these references ({error})") from error
    return of_file_system(fs, own)


def _is_ours(words: Mapping[str, Any]) -> bool:
    """Whether hyperslab can follow these options without fsspec."""
    kind = words.get("remote_protocol")
    changing = ("fs", "target", "target_protocol", "template_overrides")
    return (kind is None or _is_reachable(f"{kind}://")) and not any(words.get(name) for name in changing)


def of_file_system(fs: Any, options: Mapping[str, Any] | None = None) -> Remote | GivenReferences:
    """Take over the references of a file system `reference://`, and its options for the files."""
    fs = getattr(fs, "sync_fs", fs)
    inner = {kind: getattr(one, "sync_fs", one) for kind, one in fs.fss.items()}
    reached = [one for kind, one in inner.items() if kind is not None and is_url(f"{kind}://")]
    own = {name: value for one in reached for name, value in one.storage_options.items()} | dict(options or {})
    source = fs.storage_options.get("fo")
    if _is_lazy(fs.references):
        is_ours = all(_is_reachable(f"{kind}://") for kind in inner if kind is not None)
        if is_ours and _is_reachable(fs.references.fs.unstrip_protocol("/")):
            return Remote(fs.references.fs.unstrip_protocol(fs.references.root), own)
        return GivenReferences({}, own, fs)
    if isinstance(source, str) and is_url(source):  # remote references may lead only to their own folder
        return Remote(source, {**(fs.storage_options.get("target_options") or {}), **own})
    default = inner.get(None)
    kind = None if default is None else default.unstrip_protocol("").partition("://")[0]
    with_protocol = _with_protocol(fs.references, kind)
    if (kind is None or _is_reachable(f"{kind}://")) and all(map(_is_reachable, _names(with_protocol))):
        return GivenReferences({"refs": with_protocol}, own)
    return GivenReferences({}, own, fs)


def _with_protocol(references: Mapping[str, Any], kind: str | None) -> Mapping[str, Any]:
    """Add the protocol `kind` to the names of files that lack one."""
    if kind is None or not is_url(f"{kind}://"):
        return references
    if isinstance(references.get("refs"), Mapping):
        return {**references, "refs": _with_protocol(references["refs"], kind)}

    def completed(target: Any) -> Any:
        is_named = isinstance(target, list | tuple) and target and isinstance(target[0], str)
        if not is_named or "://" in target[0] or "{{" in target[0]:
            return target
        return [f"{kind}://{target[0].lstrip('/')}", *target[1:]]

    return {key: completed(target) for key, target in references.items()}


def _names(references: Mapping[str, Any]) -> set[str]:
    """Return the names of the files that references lead to, as written."""
    keys = references.get("refs", references)
    urls = {target[0] for target in keys.values() if isinstance(target, list | tuple) and target}
    urls |= {one.get("url") for one in references.get("gen") or () if isinstance(one, dict)}
    if isinstance(references.get("templates"), dict):
        urls |= set(references["templates"].values())
    return {name for name in urls if isinstance(name, str)}


def _is_reachable(name: str) -> bool:
    """Whether hyperslab can read a file itself."""
    kind, separator, _ = name.partition("://")
    return "::" not in name and (not separator or is_url(name) or kind in ("file", "local"))


def _read_here(fs: Any) -> Mapping[str, Any]:
    """Return references that contain the bytes of all files that hyperslab cannot reach."""
    targets: dict[str, Any] = {}
    left = MOST_NBYTES
    is_local = _is_reachable(fs.fss[None].unstrip_protocol("/"))
    for key in list(fs.references):
        target = fs.references[key]
        if isinstance(target, list | tuple):
            name = target[0]
            if not isinstance(name, str):  # pandas 3 has NaN for a chunk that was never written
                continue
            if not (_is_reachable(name) and ("://" in name or is_local)):
                nbytes = target[2] if len(target) == 3 else fs.info(key)["size"] or 0
                if nbytes > left:
                    said = f"references lead to more than {MOST_NBYTES >> 20} MiB that only fsspec can read"
                    raise Unsupported(f"{said} ({shown(name)}): copy the files to this machine")
                target = fs.cat_file(key)
                left -= len(target)
        targets[key] = target
    return {"refs": targets}


def _inline(value: Any) -> str:
    """Convert the value of a key that JSON cannot express."""
    held = value.to_bytes() if hasattr(value, "to_bytes") else value
    if not isinstance(held, bytes | bytearray | memoryview):
        raise UsageError(f"a reference is a {type(value).__name__}: it must be text, bytes or [file, offset, length]")
    held = bytes(held)
    return held.decode() if held.startswith(b"base64:") else "base64:" + base64.b64encode(held).decode()


def _check(references: dict[Any, Any]) -> None:
    keys = references.get("refs", references)
    if isinstance(keys, dict) and any(isinstance(key, str) and key.split("/")[-1] in METADATA for key in keys):
        return
    said = "give kerchunk's references, {'version': 1, 'refs': {'.zgroup': ..., 'a/0.0': ...}}"
    raise UsageError(f"this dict has no key that ends in {', '.join(METADATA)}: {said}")
