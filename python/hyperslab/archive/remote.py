"""Files far away: which URLs there are, what reaches them, and which of that is secret."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperslab._core import RemoteFile, host_statistics
from hyperslab.errors import UsageError

HTTP = ("http", "https")
S3 = ("s3", "s3a")
GCS = ("gs", "gcs")
AZURE = ("az", "azure", "abfs", "abfss", "adl")
SCHEMES = (*HTTP, *S3, *GCS, *AZURE)
# What every kind of store understands, with what is used if nothing is said: seconds, but for the two counts.
LIMITS = {"connect_timeout": 10.0, "timeout": 30.0, "attempts": 6, "patience": 180.0, "concurrency": None}
# Everything else may be secret, and is neither shown nor pickled.
OPEN_OPTIONS = {
    *LIMITS, "anon", "endpoint", "endpoint_url", "region", "region_name", "requester_pays", "account_name", "project",
    "virtual_hosted_style_request", "use_ssl", "account_host",
}  # fmt: skip

_registered: dict[str, dict[str, Any]] = {}


def is_url(path: object) -> bool:
    """Whether a path is the URL of a file far away."""
    return isinstance(path, str) and path.partition("://")[0].lower() in SCHEMES and "://" in path


def credentials(url_prefix: str, **options: Any) -> None:
    """Say how to reach all URLs that start with a prefix, in this process; the longest prefix counts.

    Pickled arrays carry no credentials: a worker process takes them from its environment, or from here.

    Args:
        url_prefix: As in `"s3://bucket/"` or `"https://data.example.org/"`.
        options: As in `open(..., storage_options=...)`; none at all takes back what was said.
    """
    if not is_url(url_prefix):
        raise UsageError(f"{url_prefix!r} is no URL of a kind that we know ({', '.join(SCHEMES)})")
    if options:
        _registered[url_prefix] = dict(options)
    else:
        _registered.pop(url_prefix, None)


def stats() -> dict[str, Any]:
    """What this process asked of hosts far away, and what came, since it started.

    Returns:
        `request_count`, `retry_count` (requests among them that repeated a failed one), `round_count` (times that
        reading metadata waited for an answer), `fetched_nbytes`, and the same for each host under `hosts`.
    """
    hosts = host_statistics()
    names = ("request_count", "retry_count", "round_count", "fetched_nbytes")
    return {**{name: sum(host[name] for host in hosts.values()) for name in names}, "hosts": hosts}


@dataclass(frozen=True)
class Remote:
    """A URL with what reaches it; pickles without what may be secret."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lacking: tuple[str, ...] = ()  # names of options that a pickle left behind

    def file(self) -> RemoteFile:
        """What the compiled part needs to open it.

        Raises:
            UsageError: The URL or an option is not understood, or what it was opened with is not in this process.
        """
        given = {**_registered_for(self.url), **self.options}
        absent = [name for name in self.lacking if name not in given]
        if absent and self._kind in HTTP:
            said = f"{shown(self.url)} was opened with {', '.join(absent)} in another process"
            raise UsageError(f"{said}; say it here: hyperslab.credentials(URL prefix, {absent[0]}=...)")
        limits = {name: given.pop(name, default) for name, default in LIMITS.items()}
        url, config, headers = _KINDS[self._kind](self.url, given)
        return RemoteFile(url, config=config, headers=headers, **limits)

    @property
    def _kind(self) -> str:
        return self.url.partition("://")[0].lower()

    def beside(self, other: str) -> Remote:
        """A file by its name relative to this one, which may not lead out of the folder."""
        if other.startswith("/") or "://" in other or ".." in other.split("/"):
            raise UsageError(f"{shown(self.url)} links to {other!r}, outside its own folder: that is not followed")
        folder = self.url.partition("?")[0].rpartition("/")[0]
        return Remote(f"{folder}/{other}", self.options, self.lacking)

    def __reduce__(self) -> tuple[Any, ...]:
        kept, left = _kept(self.options)
        url = shown(self.url)
        if self._kind in HTTP:
            left += ["query"] if "?" in self.url else []
            left += ["password"] if "@" in self.url.split("/")[2] else []
        return Remote, (url, kept, tuple(dict.fromkeys((*self.lacking, *left))))


@dataclass(frozen=True)
class Sources:
    """How the files that references name are reached; pickles without what may be secret.

    Options are for the URLs of references that are here. References that are far away themselves choose neither who
    gets them: files on another web server, or in a store of another kind, are reached without them.
    """

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lacking: tuple[str, ...] = ()
    near: str | None = None  # the URL of the references

    def file(self, url: str) -> RemoteFile:
        """What the compiled part needs to open a URL.

        Raises:
            UsageError: The URL or an option is not understood, or what it was opened with is not in this process.
        """
        if not is_url(url):
            raise UsageError(f"URLs of this kind are not known, but {', '.join(SCHEMES)}")
        if self.near is None or _server(url) == _server(self.near):
            return Remote(url, self.options, self.lacking).file()
        return Remote(url, {name: value for name, value in self.options.items() if name in LIMITS}).file()

    def check(self, urls: Iterable[str]) -> None:
        """Say at once what is wrong with options, and let no server have what was meant for another.

        Raises:
            UsageError: An option is not understood, or the references name several web servers.
        """
        servers: dict[tuple[Any, ...], str] = {}
        for url in filter(is_url, urls):
            servers.setdefault(_server(url), url)
        web = [shown(url).split("/")[2] for server, url in servers.items() if server[0] is _http]
        if self.near is None and len(web) > 1 and _kept(self.options)[1]:
            said = f"references name files on {len(web)} web servers ({', '.join(web[:3])}...)"
            raise UsageError(f"{said}: say for each how to reach it, hyperslab.credentials(URL prefix, ...)")
        for url in servers.values():
            self.file(url)

    def __reduce__(self) -> tuple[Any, ...]:
        kept, left = _kept(self.options)
        near = None if self.near is None else shown(self.near)
        return Sources, (kept, tuple(dict.fromkeys((*self.lacking, *left))), near)


def _kept(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Options that pickles may hold, and the names of the others."""
    kept = {name: value for name, value in options.items() if name in OPEN_OPTIONS}
    return kept, [name for name in options if name not in OPEN_OPTIONS]


def _server(url: str) -> tuple[Any, ...]:
    """Who gets what a URL is reached with: one web server, or a kind of object store, which only gets signatures."""
    kind = url.partition("://")[0].lower()
    return (_http, kind, shown(url).split("/")[2].lower()) if kind in HTTP else (_KINDS[kind],)


def shown(url: str) -> str:
    """A URL without user, password and query, of which the last may be a signature."""
    kind, _, rest = url.partition("://")
    if kind.lower() not in HTTP:
        return url
    server, slash, path = rest.partition("/")
    return f"{kind}://{server.rpartition('@')[2]}{slash}{path.partition('?')[0].partition('#')[0]}"


def _registered_for(url: str) -> dict[str, Any]:
    prefixes = [prefix for prefix in _registered if url.startswith(prefix) or shown(url).startswith(prefix)]
    return dict(_registered[max(prefixes, key=len)]) if prefixes else {}


Reached = tuple[str, list[tuple[str, str]], list[tuple[str, str]]]  # URL, configuration of the store, HTTP headers


def _http(url: str, given: dict[str, Any]) -> Reached:
    """Options as fsspec's HTTP file system has them, and `username`, `password`, `token`, `query`."""
    kind, _, rest = url.partition("://")
    server, slash, path = rest.partition("/")
    user, at, server = server.rpartition("@")
    client = dict(given.pop("client_kwargs", None) or {})
    headers = {**(given.pop("headers", None) or {}), **(client.pop("headers", None) or {})}
    login = _login(given, client.pop("auth", None) or given.pop("auth", None), user if at else None)
    token = given.pop("token", None) or given.pop("bearer_token", None)
    query = given.pop("query", None)
    _refuse({**given, **client}, "HTTP")
    if login is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
    elif token is not None:
        headers["Authorization"] = f"Bearer {token}"
    asked = f"?{query}" if query and "?" not in path else ""
    return f"{kind}://{server}{slash}{path}{asked}", [], [(str(name), str(value)) for name, value in headers.items()]


def _login(given: dict[str, Any], auth: Any, in_url: str | None) -> tuple[str, str] | None:
    """User and password: given as such, as a pair or aiohttp's `BasicAuth`, or in the URL."""
    from urllib.parse import unquote

    user, password = given.pop("username", None), given.pop("password", None)
    if user is not None:
        return str(user), str(password or "")
    if auth is not None:
        first, second = (auth.login, auth.password) if hasattr(auth, "login") else auth
        return str(first), str(second)
    if in_url is not None:
        first, _, second = in_url.partition(":")
        return unquote(first), unquote(second)
    return None


def _s3(url: str, given: dict[str, Any]) -> Reached:
    """Options as s3fs has them, or as `object_store` does."""
    client = dict(given.pop("client_kwargs", None) or {})
    styled = dict((given.pop("config_kwargs", None) or {}).get("s3") or {})
    given |= client
    given.pop("use_ssl", None)
    given = _renamed(given, {
        "key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token",
        "anon": "aws_skip_signature", "endpoint_url": "aws_endpoint", "endpoint": "aws_endpoint",
        "region_name": "aws_region", "region": "aws_region", "requester_pays": "aws_request_payer",
    })  # fmt: skip
    if styled.get("addressing_style") == "virtual":
        given["aws_virtual_hosted_style_request"] = True
    return url, _config(given, "S3"), []


def _gcs(url: str, given: dict[str, Any]) -> Reached:
    """Options as gcsfs has them, or as `object_store` does."""
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
    """Options as adlfs has them, or as `object_store` does."""
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
    """Plain values as text; what is none or an object has no meaning for the compiled part."""
    _refuse({name: value for name, value in given.items() if not isinstance(value, str | int | float | None)}, kind)
    text = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    return [(name, text[name]) for name, value in given.items() if value is not None]


def _refuse(given: Mapping[str, Any], kind: str) -> None:
    if given:
        names = ", ".join(sorted(given))
        raise UsageError(f"storage_options that are not known for {kind}: {names}; see docs/remote.md")
