"""Remote files: URLs, the options that open them, and which of those options are secret."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from hyperslab._core import DocumentResolver, RemoteFile, host_statistics, refusal, web_url
from hyperslab.archive.far.allowed import Allowed
from hyperslab.archive.far.store_options import configured, meant_option, translated
from hyperslab.archive.far.url_prefix import AZURE, GCS, HTTP, S3, UrlParts, folder_of, parts_of
from hyperslab.errors import NoSuchFile, NotAllowed, UsageError

SCHEMES = (*HTTP, *S3, *GCS, *AZURE)
# Options of every kind of store, with their defaults. Times are in seconds; `attempts` and `concurrency` are counts.
LIMITS = {"connect_timeout": 10.0, "timeout": 30.0, "attempts": 6, "patience": 180.0, "concurrency": None}
# Only these options are shown and pickled; any other may be secret.
OPEN_OPTIONS = {
    *LIMITS, "anon", "endpoint", "endpoint_url", "region", "region_name", "requester_pays", "account_name", "project",
    "virtual_hosted_style_request", "use_ssl", "account_host", "profile",
}  # fmt: skip

_registered: dict[UrlParts, dict[str, Any]] = {}


def is_url(path: object) -> bool:
    """Whether a path is the URL of a remote file."""
    return isinstance(path, str) and path.partition("://")[0].lower() in SCHEMES and "://" in path


def credentials(url_prefix: str, **options: Any) -> None:
    """Set the credentials and other options for a URL and everything below it, in this process.

    If several prefixes match a URL, the longest one applies. Scheme, server and port must be equal, and paths are
    compared part by part: options for `https://data.example.org/a` apply to `/a/b`, but neither to `/ab` nor to
    `https://data.example.org:8443/a`. For object stores the bucket must be equal; `"s3://"` alone matches all buckets.
    A URL whose path hides a `..` behind codes such as `%2f` matches no prefix.

    Pickled arrays carry no credentials. Worker processes take them from their environment, or you call this function
    there.

    Parameters
    ----------
    url_prefix : str
        For example `"s3://bucket/"` or `"https://data.example.org/"`. User and query are ignored.
    options : Any
        The same options as in `open(..., storage_options=...)`. Without options, the prefix is forgotten.

    Raises
    ------
    UsageError
        The prefix is not a URL of a known kind, or it is ambiguous.
    """
    if not is_url(url_prefix):
        raise UsageError(f"{url_prefix!r} is not a URL of a known kind ({', '.join(SCHEMES)})")
    prefix = _prefix(url_prefix)
    if prefix is None:
        raise UsageError(f"{shown(url_prefix)} names no server, or its path is ambiguous: give a plain URL")
    if options:
        _registered[prefix] = dict(options)
    else:
        _registered.pop(prefix, None)


def stats() -> dict[str, Any]:
    """Count the remote requests of this process since it started.

    Returns
    -------
    dict[str, Any]
        `request_count`; `retry_count`, the requests that repeated a failed one; `redirect_count`, the answers that sent
        a request elsewhere; `round_count`, how often reading metadata waited for answers; `fetched_nbytes`; and
        `reused_nbytes`, the bytes that came from the cache of `open(..., cache_nbytes=...)`. `hosts` has the same
        counts for each host.
    """
    hosts = host_statistics()
    names = ("request_count", "retry_count", "redirect_count", "round_count", "fetched_nbytes", "reused_nbytes")
    return {**{name: sum(host[name] for host in hosts.values()) for name in names}, "hosts": hosts}


@dataclass(frozen=True)
class Remote:
    """A URL with the options that open it. Pickles carry no credentials."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lacking: tuple[str, ...] = ()  # names of the options that pickling removed
    cache_nbytes: int = 0  # memory for fetched bytes

    def __post_init__(self) -> None:
        if is_url(self.url) and not self.url.partition("://")[2].partition("/")[0]:
            what = "server" if self._kind in HTTP else "bucket" if self._kind not in AZURE else "container"
            raise UsageError(f"{shown(self.url)} names no {what}: write {self._kind}://{what.upper()}/NAME")

    def __repr__(self) -> str:
        return f"Remote({shown(self.url)!r}, lacking={self.lacking!r}, cache_nbytes={self.cache_nbytes!r})"

    def below(self, key: str) -> Remote:
        """The object at a key below this folder."""
        folder, path = self.folder(), self.folder()._path
        return replace(folder, url=f"{path}/{key}{folder.url[len(path) :]}") if key else folder

    def file(self, allowed: list[str] | None = None) -> RemoteFile:
        """Make what the compiled part needs to open the URL.

        Parameters
        ----------
        allowed : list[str] | None
            URLs that the server may redirect to besides its own, each with everything below it; None for any.

        Returns
        -------
        RemoteFile
            The URL with the configuration of its store and its HTTP headers.

        Raises
        ------
        UsageError
            The URL or an option is not known, or this process lacks credentials that pickling removed.
        """
        (url, config, headers), limits = self.reached()
        kept = self.cache_nbytes
        try:
            return RemoteFile(url, config=config, headers=headers, cache_nbytes=kept, allowed=allowed, **limits)
        except UsageError as error:
            wrong = next((name for name, _ in config if f'"{name}" is not known' in str(error)), None)
            if wrong is None:
                raise
            raise UsageError(f"{error}{meant_option(self._kind, wrong)}; see docs/remote.md") from error

    def reached(self) -> tuple[Reached, dict[str, Any]]:
        """The URL to ask for, with the configuration of its store and HTTP headers; and the limits of requests.

        Raises
        ------
        UsageError
            The URL or an option is not known, or this process lacks credentials that pickling removed.
        """
        given = self._given()
        absent = [name for name in self.lacking if name not in given]
        if absent and self._kind in HTTP:
            said = f"{shown(self.url)} was opened with {', '.join(absent)} in another process"
            raise UsageError(f"{said}; say it here: hyperslab.credentials(URL prefix, {absent[0]}=...)")
        given = translated(self._kind, given)
        limits = {name: given.pop(name, default) for name, default in LIMITS.items()}
        return _KINDS[self._kind](self.url, given), limits

    def listed(self) -> dict[str, str]:
        """The settings of the object store, by the names that `object_store` and obstore have for them."""
        given = translated(self._kind, self._given())
        _, config, _ = _KINDS[self._kind](self.url, {name: one for name, one in given.items() if name not in LIMITS})
        return dict(config)

    def _given(self) -> dict[str, Any]:
        """All options, by the names that users give them: those of this URL win."""
        own = {} if self._kind in HTTP else configured(self._kind)  # a web server may be one that a document names
        return {**own, **_registered_for(self.url), **self.options}

    @property
    def names_file(self) -> bool:
        """Whether the URL looks like that of a file, not of a Zarr hierarchy."""
        _, _, key = self._path.partition("://")[2].partition("/")
        return bool(key) and not key.endswith(("/", ".zarr"))

    @property
    def has_suffix(self) -> bool:
        """Whether the name has a file extension."""
        return "." in self._path.rpartition("/")[2]

    @property
    def _path(self) -> str:
        return self.url.partition("?")[0] if self._kind in HTTP else self.url

    def folder(self) -> Remote:
        """The same URL as a folder, without a slash at the end; keys are appended to it."""
        path = self._path
        return replace(self, url=path.removesuffix("/") + self.url[len(path) :])

    @property
    def _kind(self) -> str:
        return self.url.partition("://")[0].lower()

    def beside(self, other: str) -> Remote:
        """A file next to this one, by its relative name."""
        folder = self.url.partition("?")[0].rpartition("/")[0]
        return replace(self, url=f"{folder}/{other}")

    def __reduce__(self) -> tuple[Any, ...]:
        kept, left = _kept(self.options)
        url = shown(self.url)
        if self._kind in HTTP:
            left += ["query"] if "?" in self.url else []
            left += ["password"] if any((web_url(self.url) or ())[1:3]) else []
        return Remote, (url, kept, tuple(dict.fromkeys((*self.lacking, *left))), self.cache_nbytes)


@dataclass(frozen=True)
class SourceResolver:
    """Finds and opens the files that a document names. Pickles carry no credentials.

    A local document uses the options for every URL that it names. A remote document must not choose who receives your
    credentials: files on another web server, or in a store of another kind, are opened without the options.
    """

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lacking: tuple[str, ...] = ()
    near: str | None = field(default=None, repr=False)  # the URL of a remote document
    allowed: Allowed = field(default_factory=Allowed)

    def file(self, url: str) -> RemoteFile:
        """Make what the compiled part needs to open a URL that the document names.

        Raises
        ------
        NotAllowed
            The document may not lead there.
        UsageError
            The URL or an option is not known, or this process lacks credentials that pickling removed.
        """
        if not self.allowed.permits(url, self.near):
            raise self.refused(url)
        return self.remote(url).file(self.allowed.redirects())

    def check_allowed(self, path: str) -> None:
        """Check that the document may lead to a path, a URL, or a name relative to the document.

        Raises
        ------
        NotAllowed
            It may not lead there.
        """
        if self.near is not None and "://" not in path and not os.path.isabs(path):  # noqa: PTH117
            path = f"{folder_of(self.near)}/{path}"
        if not (self.allowed.permits if "://" in path else self.allowed.permits_file)(path, self.near):
            raise self.refused(path)

    def refused(self, location: str) -> NotAllowed:
        """The error for a location that the document may not lead to."""
        document = shown(self.near) if self.near is not None else ", ".join(map(shown, self.allowed.own))
        return NotAllowed(refusal(document, shown(location), [*map(shown, self.allowed.listed(self.near))]))

    def remote(self, url: str) -> Remote:
        """A URL with the options that its server may receive.

        Raises
        ------
        UsageError
            The URL is not of a known kind.
        """
        if not is_url(url):
            raise UsageError(f"URLs of this kind are not supported; use {', '.join(SCHEMES)}")
        if self.near is None or _server(url) == _server(self.near):
            return Remote(url, self.options, self.lacking)
        return Remote(url, {name: value for name, value in self.options.items() if name in LIMITS})

    def for_document(self, document: str) -> DocumentResolver:
        """Make what the compiled part needs to open the files that a document leads to."""
        files, listed = self.allowed.files(self.near), [*map(shown, self.allowed.listed(self.near))]
        own = [document] if self.near is None else []
        return DocumentResolver(document, self.file, None if files is None else [*files, *own], listed)

    def linked(self, location: str | Remote, name: str) -> tuple[str | Remote, SourceResolver]:
        """Resolve a link: the location of the file, and the resolver for that file.

        Parameters
        ----------
        location : str | Remote
            The file that has the link.
        name : str
            The name of the other file, as the link has it.

        Returns
        -------
        tuple[str | Remote, SourceResolver]
            What `OpenFile` needs to open the other file.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        NotAllowed
            The link may not lead there.
        """
        if isinstance(location, Remote) and not is_url(name) and not name.startswith("/") and "://" not in name:
            beside = location.beside(name)
            if not self.allowed.permits(beside.url, self.near):
                raise self.refused(beside.url)
            return beside, replace(self, near=beside.url)
        if is_url(name):
            if not self.allowed.permits(name, self.near):
                raise self.refused(name)
            return self.remote(name), replace(self, near=name)
        own = shown(location.url) if isinstance(location, Remote) else location
        target = self.for_document(own).linked(own, name)
        if target is None:
            raise NoSuchFile.at(os.path.join(os.path.dirname(own), name))  # noqa: PTH118, PTH120
        return os.path.abspath(target), replace(self, near=None)  # noqa: PTH100

    def check(self, urls: Iterable[str]) -> None:
        """Report wrong options early, and make sure that no server receives credentials that are meant for another.

        Raises
        ------
        UsageError
            An option is not known, or the references name several web servers.
        """
        servers: dict[tuple[Any, ...], str] = {}
        for url in filter(is_url, urls):
            if not self.allowed.permits(url, self.near):
                continue  # reported when the file is read
            servers.setdefault(_server(url), url)
        web = [shown(url).split("/")[2] for server, url in servers.items() if server[0] is _http]
        if self.near is None and len(web) > 1 and _kept(self.options)[1]:
            said = f"references name files on {len(web)} web servers ({', '.join(web[:3])}...)"
            raise UsageError(f"{said}: give the options of each with hyperslab.credentials(URL prefix, ...)")
        for url in servers.values():
            self.file(url)

    def __reduce__(self) -> tuple[Any, ...]:
        kept, left = _kept(self.options)
        near = None if self.near is None else shown(self.near)
        return SourceResolver, (kept, tuple(dict.fromkeys((*self.lacking, *left))), near, self.allowed)


def _kept(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The options that may be pickled, and the names of the others."""
    kept = {name: value for name, value in options.items() if name in OPEN_OPTIONS}
    return kept, [name for name in options if name not in OPEN_OPTIONS]


def _server(url: str) -> tuple[Any, ...]:
    """Who receives the options of a URL: a web server, or a kind of object store (which only sees signatures)."""
    kind = url.partition("://")[0].lower()
    parts = web_url(url)
    return (_http, kind, parts[3] if parts else url) if kind in HTTP else (_KINDS[kind],)


def shown(url: str) -> str:
    """A URL without user, password and query (a query may be a signature)."""
    kind, _, rest = url.partition("://")
    if kind.lower() in HTTP:
        parts = web_url(url)
        return f"{parts[0]}://{parts[3]}{parts[4]}" if parts else f"{kind}://…"
    server, slash, key = rest.partition("/")
    user, at, server = server.rpartition("@")
    container = user.partition(":")[0] + at if kind.lower() in AZURE else ""
    return f"{kind}://{container}{server}{slash}{key}" if is_url(url) else url


def _prefix(url: str) -> UrlParts | None:
    """The parts of a prefix, however it is written."""
    parsed = parts_of(url)
    return None if parsed is None else parsed._replace(is_straight=True)


def _registered_for(url: str) -> dict[str, Any]:
    parts = parts_of(url)
    covering = [] if parts is None else [prefix for prefix in _registered if parts.is_below(prefix)]
    if not covering:
        return {}
    return dict(_registered[max(covering, key=lambda prefix: (bool(prefix.server), len(prefix.path)))])


Reached = tuple[str, list[tuple[str, str]], list[tuple[str, str]]]  # URL, configuration of the store, HTTP headers


def _http(url: str, given: dict[str, Any]) -> Reached:
    """The options of fsspec's HTTP file system, and `username`, `password`, `token` and `query`."""
    parts = web_url(url)
    if parts is None:
        raise UsageError(f"{shown(url)} is not a valid URL of a web server")
    kind, user, password, server, path, asked = parts
    client = dict(given.pop("client_kwargs", None) or {})
    headers = {**(given.pop("headers", None) or {}), **(client.pop("headers", None) or {})}
    login = _login(given, client.pop("auth", None) or given.pop("auth", None), (user, password))
    token = given.pop("token", None) or given.pop("bearer_token", None)
    query = given.pop("query", None)
    _refuse({**given, **client}, "HTTP")
    if login is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
    elif token is not None:
        headers["Authorization"] = f"Bearer {token}"
    asked = query if asked is None else asked
    whole = f"{kind}://{server}{path}" + (f"?{asked}" if asked else "")
    return whole, [], [(str(name), str(value)) for name, value in headers.items()]


def _login(given: dict[str, Any], auth: Any, in_url: tuple[str, str]) -> tuple[str, str] | None:
    """User and password, from the options, from a pair or aiohttp's `BasicAuth`, or from the URL."""
    user, password = given.pop("username", None), given.pop("password", None)
    if user is not None:
        return str(user), str(password or "")
    if auth is not None:
        first, second = (auth.login, auth.password) if hasattr(auth, "login") else auth
        return str(first), str(second)
    return (unquote(in_url[0]), unquote(in_url[1])) if any(in_url) else None


def _s3(url: str, given: dict[str, Any]) -> Reached:
    """Options as `object_store` has them."""
    return url, _config(given, "S3"), []


def _gcs(url: str, given: dict[str, Any]) -> Reached:
    """The options of gcsfs, or those of `object_store`."""
    token = given.pop("token", None)
    given.pop("project", None)
    if token == "anon":
        given["anon"] = True
    elif isinstance(token, Mapping):
        import json

        given["google_service_account_key"] = json.dumps(token)
    elif isinstance(token, str) and token not in ("google_default", "cloud", "cache"):
        given["google_service_account" if token.endswith(".json") else "google_bearer_token"] = token
    names = {"anon": "google_skip_signature", "endpoint_url": "google_base_url", "endpoint": "google_base_url"}
    return url, _config(_renamed(given, names), "Google Cloud Storage"), []


def _azure(url: str, given: dict[str, Any]) -> Reached:
    """The options of adlfs, or those of `object_store`."""
    parts = dict(part.partition("=")[::2] for part in (given.pop("connection_string", None) or "").split(";") if part)
    known = {"AccountName": "account_name", "AccountKey": "account_key", "SharedAccessSignature": "sas_token",
             "BlobEndpoint": "endpoint"}  # fmt: skip
    given = {**{known[name]: value for name, value in parts.items() if name in known}, **given}
    names = {"anon": "azure_skip_signature", "endpoint_url": "azure_endpoint", "endpoint": "azure_endpoint",
             "account_name": "azure_storage_account_name"}  # fmt: skip
    return url, _config(_renamed(given, names), "Azure"), []


_KINDS: dict[str, Callable[[str, dict[str, Any]], Reached]] = {
    **dict.fromkeys(HTTP, _http), **dict.fromkeys(S3, _s3), **dict.fromkeys(GCS, _gcs), **dict.fromkeys(AZURE, _azure),
}  # fmt: skip


def _renamed(given: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in given.items()}


def _config(given: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    """Convert plain values to text for the compiled part, leave None out, and refuse other objects."""
    _refuse({name: value for name, value in given.items() if not isinstance(value, str | int | float | None)}, kind)
    text = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    return [(name, text[name]) for name, value in given.items() if value is not None]


def _refuse(given: Mapping[str, Any], kind: str) -> None:
    if given:
        names = ", ".join(sorted(given))
        near = meant_option(HTTP[0], min(given)) if kind == "HTTP" else ""
        raise UsageError(f"unknown storage_options for {kind}: {names}{near}; see docs/remote.md")
