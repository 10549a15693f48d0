"""AWS profiles in `~/.aws/credentials` and `~/.aws/config`, which the AWS command line and s3fs use too.

This module reads keys, region and endpoint. If a profile only says how to get keys (single sign-on, roles, a program),
botocore gets them, as it does for s3fs.
"""

from __future__ import annotations

import configparser
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from hyperslab.errors import UsageError
from hyperslab.meant import meant
from hyperslab.needed import advice

KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# Settings which mean that a profile does not contain its keys, but says how to get them.
ASKED_FOR = (
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_process",
    "login_session",
    "web_identity_token_file",
)
Stamp = tuple[str, int]  # the path of a file, and its modification time
# If one of these is set and you name no profile, the keys come from the environment, which the Rust core reads.
OF_ENVIRONMENT = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")


def profile_options(given: dict[str, Any]) -> dict[str, Any]:
    """Add the keys, region and endpoint of a profile to options that lack them.

    Parameters
    ----------
    given : dict[str, Any]
        Options with the names of `object_store`, and optionally `profile`.

    Returns
    -------
    dict[str, Any]
        The options without `profile`, and with what the profile adds.

    Raises
    ------
    UsageError
        The profile does not exist, or there is no way to get its keys.
    """
    options = dict(given)
    named = options.pop("profile", None)
    name = named or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    config, credentials = _paths()
    stamps = (_stamped(config), _stamped(credentials))
    profiles = _profiles(*stamps)
    settings = profiles.get(name)
    if settings is None:
        if named or (name != "default" and not _has_keys(options)):
            known = f"there are {', '.join(profiles)}" if profiles else "there are none"
            raise UsageError(f"no profile {name!r} in {config} and {credentials}: {known}{meant(name, profiles)}")
        return options
    if not _has_region(options) and settings.get("region"):
        options["aws_region"] = settings["region"]
    endpoint = settings.get("s3 endpoint_url") or settings.get("endpoint_url")
    is_ignored = os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true"
    if endpoint and not is_ignored and not _has_endpoint(options):
        options["aws_endpoint"] = endpoint
    if _has_keys(options) or not (named or not any(map(os.environ.get, OF_ENVIRONMENT))):
        return options
    options.update(_keys(name, settings, stamps))
    return options


def _paths() -> tuple[Path, Path]:
    """Return the paths of the two files with profiles. The keys of the second one win."""
    config = os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config"
    credentials = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    return Path(os.path.expanduser(config)), Path(os.path.expanduser(credentials))  # noqa: PTH111 -- Path's may raise


def _stamped(path: Path) -> Stamp:
    """Return the path and the modification time of a file; 0 if there is no such file."""
    try:
        return str(path), path.stat().st_mtime_ns
    except OSError:
        return str(path), 0


@lru_cache(maxsize=8)
def _profiles(config: Stamp, credentials: Stamp) -> dict[str, dict[str, str]]:
    """Return the settings of each profile by its name."""
    sections = _sections(config)
    profiles: dict[str, dict[str, str]] = {}
    for section, said in sections.items():
        kind, _, name = section.partition(" ")
        if section == "default" or kind == "profile":
            profiles[name.strip().strip("\"'") or "default"] = said
    for said in profiles.values():
        services = sections.get(f"services {said.get('services', '')}", {})
        s3 = _nested(services.get("s3", ""))
        if s3.get("endpoint_url"):
            said["s3 endpoint_url"] = s3["endpoint_url"]
    for name, said in _sections(credentials).items():
        profiles[name] = {**profiles.get(name, {}), **said}
    return profiles


def _sections(stamped: Stamp) -> dict[str, dict[str, str]]:
    path, changed = stamped
    if not changed:
        return {}
    parser = configparser.RawConfigParser(default_section="\0", strict=False)
    try:
        parser.read_string(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise UsageError(f"{path} is not a valid AWS configuration ({type(error).__name__}): correct it") from None
    return {name: dict(parser[name]) for name in parser.sections()}


def _nested(text: str) -> dict[str, str]:
    """Parse nested settings, one in each line."""
    lines = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in lines}


def _has_region(options: dict[str, Any]) -> bool:
    names = ("AWS_REGION", "AWS_DEFAULT_REGION")
    return bool(options.get("aws_region")) or any(map(os.environ.get, names))


def _has_endpoint(options: dict[str, Any]) -> bool:
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return bool(options.get("aws_endpoint")) or any(map(os.environ.get, names))


def _has_keys(options: dict[str, Any]) -> bool:
    """Whether you gave keys, or want requests without a signature."""
    given = (options.get(name) for name in ("aws_access_key_id", "access_key_id"))
    unsigned = options.get("aws_skip_signature", options.get("skip_signature"))
    return any(given) or str(unsigned).lower() == "true"


def _keys(name: str, settings: dict[str, str], stamps: tuple[Stamp, Stamp]) -> dict[str, str]:
    """Return the keys of a profile; nothing if it has none, so that the machine's role is used."""
    if settings.get("aws_access_key_id") and "role_arn" not in settings:
        return {key: settings[key] for key in KEYS if settings.get(key)}
    if not any(settings.get(way) for way in ASKED_FOR):
        return {}
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        said = f"{advice('botocore')}, or give key=, secret= and token="
        raise UsageError(f"only botocore can get the keys of the AWS profile {name!r}: {said}") from None
    try:
        credentials = _asked(name, stamps)
        frozen = None if credentials is None else credentials.get_frozen_credentials()
    except (BotoCoreError, ClientError) as error:
        said = f"log in again (aws sso login --profile {name}), or give key= and secret="
        raise UsageError(f"the AWS profile {name!r} gives no keys ({type(error).__name__}): {said}") from None
    if frozen is None:
        raise UsageError(f"the AWS profile {name!r} gives no keys: give key= and secret=, or anon=True")
    values = (frozen.access_key, frozen.secret_key, frozen.token)
    return {key: value for key, value in zip(KEYS, values, strict=True) if value}


@lru_cache(maxsize=8)
def _asked(name: str, stamps: tuple[Stamp, Stamp]) -> Any:  # noqa: ARG001 -- changed files are read again
    """Return botocore's credentials for a profile. botocore keeps the keys, and renews them when they expire."""
    from botocore.session import Session

    return Session(profile=name).get_credentials()
