"""Translate the options of s3fs, gcsfs, adlfs, fsspec's HTTP file system and obstore into our own names.

An option is translated; or ignored, if it cannot affect our requests (such as how files are cached); or refused, and
the message says what to write instead. An option that changes what you read is never ignored. Messages never contain
the values of options, because these may be secret.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from hyperslab.archive.far.aws_profiles import profile_options
from hyperslab.archive.far.url_prefix import AZURE, GCS, HTTP, S3
from hyperslab.errors import UsageError
from hyperslab.meant import meant

Options = dict[str, Any]

# Options that say how fsspec's file systems read, list and cache. They do not change what you read.
OF_READING = frozenset((
    "asynchronous", "loop", "skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths",
    "block_size", "blocksize", "default_block_size", "default_fill_cache", "default_cache_type", "cache_type",
    "cache_options", "cache_regions", "batch_size", "fill_cache", "max_concurrency", "auto_mkdir", "simple_links",
    "same_names", "same_scheme", "size_policy", "get_client", "encoded", "fixed_upload_size", "cache_timeout",
    "consistency", "secure_serialize", "check_connection", "access", "default_location", "location_mode",
    "assume_container_exists", "default_cache_options", "max_block_size", "remote_options", "trust_env", "mode",
))  # fmt: skip
# Options of obstore's clients that do not matter to our own requests.
OF_CLIENTS = frozenset((
    "allow_http", "http1_only", "http2_only", "http2_keep_alive_interval", "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle", "http2_max_frame_size", "pool_idle_timeout", "pool_max_idle_per_host", "user_agent",
    "randomize_addresses",
))  # fmt: skip
# Settings of botocore's clients that do not change what you read.
OF_BOTOCORE = frozenset((
    "max_pool_connections", "user_agent", "user_agent_extra", "user_agent_appid", "tcp_keepalive",
    "use_dualstack_endpoint", "parameter_validation", "inject_host_prefix",
    "request_checksum_calculation", "response_checksum_validation",
    "request_min_compression_size_bytes", "disable_request_compression", "service_name", "api_version", "config",
))  # fmt: skip
# The names that people give most; an unknown name may be a misspelled one of these.
NAMES = {
    HTTP: ("headers", "username", "password", "token", "query", "client_kwargs", "cookies"),
    S3: ("key", "secret", "username", "password", "token", "anon", "profile", "endpoint_url", "region", "region_name",
         "requester_pays", "client_kwargs", "config_kwargs"),
    GCS: ("token", "anon", "project", "endpoint_url"),
    AZURE: ("account_name", "account_key", "sas_token", "tenant_id", "client_id", "client_secret",
            "connection_string", "anon", "endpoint_url"),
}  # fmt: skip
OF_ALL_STORES = ("connect_timeout", "timeout", "attempts", "patience", "concurrency")
MAPPINGS = ("headers", "client_kwargs", "config_kwargs", "cookies", "client_options", "retry_config")
CERTIFICATES = (
    "hyperslab always checks certificates: set SSL_CERT_FILE to a file with the certificate of your authority"
)
REMEDIES = {
    "session": "give key=, secret= and token=, or profile=",
    "proxies": "set HTTPS_PROXY in the environment",
    "proxy": "set HTTPS_PROXY in the environment",
    "proxy_url": "set HTTPS_PROXY in the environment",
    "verify": CERTIFICATES,
    "ssl": CERTIFICATES,
    "connector": CERTIFICATES,
    "allow_invalid_certificates": CERTIFICATES,
    "version_aware": "leave it out: a file that is replaced while you read it raises FileChanged",
    "cookie_jar": "give cookies={name: value}",
    "request_session": "give account_name= and account_key=, or sas_token=",
    "session_kwargs": "set HTTPS_PROXY in the environment, or give timeout=",
    "use_ssl": "give endpoint_url='http://...', with the server's name",
    "SSECustomerKey": "download files that are encrypted with your own key first",
}


def translated(kind: str, given: Mapping[str, Any]) -> Options:
    """Translate options into the names that our stores use.

    Parameters
    ----------
    kind : str
        The scheme of a URL, such as `"s3"`.
    given : Mapping[str, Any]
        Options under the names of s3fs, gcsfs, adlfs, fsspec, obstore or hyperslab.

    Returns
    -------
    dict[str, Any]
        The same options under our names, without those that only say how another library reads or caches.

    Raises
    ------
    UsageError
        hyperslab cannot follow an option; the message says what to write instead.
    """
    options = {name: value for name, value in given.items() if name not in OF_READING}
    for name in MAPPINGS:
        if options.get(name) is not None and not isinstance(options[name], Mapping):
            raise UsageError(f"the storage option {name} is not a mapping: give {name}={{'name': 'value'}}, "
                             f"or on the command line --option '{name}={{\"name\": \"value\"}}'")  # fmt: skip
    _of_obstore(options)
    return _TRANSLATIONS[kind](options)


def meant_option(kind: str, name: str) -> str:
    """`; did you mean 'headers'?` for an option that a kind of URL does not have; or nothing."""
    return meant(name, next((*names, *OF_ALL_STORES) for kinds, names in NAMES.items() if kind in kinds))


def _of_obstore(options: Options) -> None:
    """Translate the parameters of obstore's stores that are not part of their configuration, in place."""
    options.update(client_options(options.pop("client_options", None), ("default_headers",)))
    retrying = dict(options.pop("retry_config", None) or {})
    retrying.pop("backoff", None)
    if "max_retries" in retrying:
        options.setdefault("attempts", int(retrying.pop("max_retries")) + 1)
    if "retry_timeout" in retrying:
        options.setdefault("patience", seconds(retrying.pop("retry_timeout")))
    refuse_rest(retrying, "retry_config")
    options.update(provided(options.pop("credential_provider", None)))


def client_options(given: Mapping[str, Any] | None, handled: tuple[str, ...] = ()) -> Options:
    """Translate obstore's `client_options`.

    Parameters
    ----------
    given : Mapping[str, Any] or None
        The `client_options`.
    handled : tuple of str
        `("default_headers",)` if the store can send headers; otherwise headers are refused.

    Returns
    -------
    dict[str, Any]
        `timeout`, `connect_timeout` (seconds) and `headers`, as far as they are given.

    Raises
    ------
    UsageError
        hyperslab cannot follow an option.
    """
    known = {name: value for name, value in (given or {}).items() if name not in OF_CLIENTS}
    options: Options = {name: seconds(known.pop(name)) for name in ("timeout", "connect_timeout") if name in known}
    if "default_headers" in handled and known.get("default_headers"):
        options["headers"] = {_text(name): _text(value) for name, value in known.pop("default_headers").items()}
    refuse_rest(known, "client_options of obstore")
    return options


def seconds(value: Any) -> float:
    """Convert a duration as obstore takes it.

    Parameters
    ----------
    value : timedelta or str
        For example `"30s"`, `"2m"`, `"500ms"`.

    Returns
    -------
    float
        The duration in seconds.

    Raises
    ------
    UsageError
        The text is not a duration.
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    text = str(value).replace(" ", "")
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    units = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
    unit = units.get(text[len(number) :])
    if unit is None or not number.replace(".", "", 1).isdecimal():
        raise UsageError("a timeout of obstore is not a duration that hyperslab knows: give a timedelta")
    return float(number) * unit


def provided(provider: Callable[[], Any] | None) -> Options:
    """Call a credential provider of obstore, once, and return its credentials.

    Raises
    ------
    UsageError
        The provider is asynchronous.
    """
    if provider is None:
        return {}
    given = provider()
    if not isinstance(given, Mapping):
        if hasattr(given, "close"):
            given.close()  # otherwise Python warns that the coroutine was never awaited
        raise UsageError("hyperslab cannot use an asynchronous credential provider of obstore: give a synchronous one")
    return {name: str(value) for name, value in given.items() if name != "expires_at" and value is not None}


def refuse_rest(given: Mapping[str, Any], what: str) -> None:
    """Refuse options that hyperslab cannot follow, and say for each what to write instead.

    Parameters
    ----------
    given : Mapping[str, Any]
        The options; only their names appear in the message.
    what : str
        The name of the argument that contains them.

    Raises
    ------
    UsageError
        `given` is not empty.
    """
    if given:
        said = (f"{name} ({REMEDIES[name]})" if name in REMEDIES else name for name in sorted(given))
        raise UsageError(f"{what} that hyperslab cannot follow: {', '.join(said)}; see docs/remote.md")


def configured(kind: str) -> Options:
    """Return fsspec's configuration for a kind of URL: from its files, `FSSPEC_...` in the environment, and `conf`."""
    if not _is_fsspec_configured():
        return {}
    try:
        from fsspec.config import conf
    except ImportError:
        return {}
    names = next((names for names in (HTTP, S3, GCS, AZURE) if kind in names), (kind,))
    options: Options = {}
    for name in (*names[::-1], kind):  # the configuration of exactly this scheme wins
        options.update({key: value for key, value in (conf.get(name) or {}).items() if key not in OF_READING})
    return options


def _is_fsspec_configured() -> bool:
    """Whether fsspec may have a configuration, so that it is worth importing."""
    if "fsspec.config" in sys.modules or any(name.startswith("FSSPEC_") for name in os.environ):
        return True
    return (Path.home() / ".config" / "fsspec").is_dir()


def _s3(options: Options) -> Options:
    """Translate options of s3fs or `object_store`."""
    client = dict(options.pop("client_kwargs", None) or {})
    config = {**dict(options.pop("config_kwargs", None) or {})}
    extra = dict(options.pop("s3_additional_kwargs", None) or {})
    options.update({name: value for name, value in client.items() if name not in OF_BOTOCORE})
    if options.pop("verify", None) not in (None, True):
        refuse_rest({"verify": None}, "storage_options")
    if extra.pop("RequestPayer", None) == "requester":
        options["requester_pays"] = True
    refuse_rest({name: None for name in extra if name.startswith("SSECustomer")}, "s3_additional_kwargs")
    _botocore_config(options, config)
    endpoint = options.get("endpoint_url") or options.get("endpoint")
    if options.pop("use_ssl", None) is False and not endpoint:
        refuse_rest({"use_ssl": None}, "storage_options")
    if not options.get("version_aware"):
        options.pop("version_aware", None)
    refuse_rest({name: None for name in ("session", "version_aware") if options.pop(name, None)}, "storage_options")
    for name, other in (("username", "key"), ("password", "secret")):
        if options.get(name) is not None:
            options.setdefault(other, options[name])
        options.pop(name, None)
    names = {
        "key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token",
        "anon": "aws_skip_signature", "endpoint_url": "aws_endpoint", "endpoint": "aws_endpoint",
        "region_name": "aws_region", "region": "aws_region", "requester_pays": "aws_request_payer",
    }  # fmt: skip
    named = {names.get(name, name): value for name, value in options.items() if value is not None}
    return profile_options(named)


def _botocore_config(options: Options, config: Options) -> None:
    """Translate `config_kwargs`, which s3fs passes to botocore, into `options`."""
    styled = dict(config.pop("s3", None) or {})
    if styled.get("addressing_style") == "virtual":
        options["aws_virtual_hosted_style_request"] = True
    signature = config.pop("signature_version", None)
    if signature is not None and (type(signature).__name__ == "UNSIGNED" or "UNSIGNED" in str(signature)):
        options["anon"] = True
    retries = dict(config.pop("retries", None) or {})
    attempts = retries.get("total_max_attempts") or retries.get("max_attempts")
    if attempts is not None:
        options.setdefault("attempts", max(int(attempts), 1))
    for name, other in (("connect_timeout", "connect_timeout"), ("read_timeout", "timeout")):
        value = config.pop(name, None)
        if value is not None:
            options.setdefault(other, float(value))
    region = config.pop("region_name", None)
    if region is not None:
        options.setdefault("region_name", region)
    refuse_rest({name: value for name, value in config.items() if name not in OF_BOTOCORE and value}, "config_kwargs")


def _http(options: Options) -> Options:
    """Translate options of fsspec's HTTP file system, which passes them to aiohttp."""
    client = dict(options.get("client_kwargs") or {})
    client = {name: value for name, value in client.items() if name not in OF_READING}
    cookies = {**(client.pop("cookies", None) or {}), **(options.pop("cookies", None) or {})}
    waited = client.pop("timeout", None)
    if waited is not None:
        least = [getattr(waited, name, None) for name in ("sock_read", "total")]
        number = waited if isinstance(waited, int | float) else next((one for one in least if one), None)
        options.setdefault("timeout", 30.0 if number is None else float(number))
    timeout = options.get("timeout")
    if timeout is not None and not isinstance(timeout, int | float):
        options["timeout"] = next((one for one in (timeout.sock_read, timeout.total) if one), 30.0)
    for given in (client, options):
        if given.pop("ssl", None) not in (None, True):
            refuse_rest({"ssl": None}, "storage_options")
        refuse_rest({name: None for name in ("connector", "cookie_jar") if given.pop(name, None)}, "storage_options")
    if cookies:
        said = "; ".join(f"{name}={value}" for name, value in cookies.items())
        options["headers"] = {**(options.get("headers") or {}), "Cookie": said}
    options["client_kwargs"] = client
    return options


def _gcs(options: Options) -> Options:
    """Translate options of gcsfs."""
    token = options.get("token")
    if token == "browser":
        said = "token='browser' is not supported for Google Cloud Storage"
        raise UsageError(f"{said}: log in with `gcloud auth application-default login`")
    if token is not None and hasattr(token, "token"):  # credentials of google.auth
        options["token"] = token.token
    waited = options.pop("requests_timeout", None)
    if waited is not None:
        options.setdefault("timeout", float(waited))
    if options.pop("requester_pays", None):
        said = "requester_pays is not supported for Google Cloud Storage"
        raise UsageError(f"{said}: copy the file to a bucket of your own")
    taken = [name for name in ("version_aware", "session_kwargs") if options.pop(name, None)]
    refuse_rest(dict.fromkeys(taken), "storage_options")
    return options


def _azure(options: Options) -> Options:
    """Translate options of adlfs."""
    credential = options.pop("credential", None)
    if isinstance(credential, str):
        options.setdefault("sas_token", credential)
    elif credential is not None:
        said = "give account_key=, sas_token=, or tenant_id=, client_id= and client_secret="
        raise UsageError(f"credential= for Azure is an object that only adlfs can use: {said}")
    waited = options.pop("socket_timeout", None)
    if waited is not None:
        options.setdefault("timeout", float(waited))
    taken = [name for name in ("version_aware", "request_session") if options.pop(name, None)]
    refuse_rest(dict.fromkeys(taken), "storage_options")
    return options


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


_TRANSLATIONS: dict[str, Callable[[Options], Options]] = {
    **dict.fromkeys(HTTP, _http), **dict.fromkeys(S3, _s3), **dict.fromkeys(GCS, _gcs), **dict.fromkeys(AZURE, _azure),
}  # fmt: skip
