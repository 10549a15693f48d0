"""How programs under `hyperslab run` reach URLs: with the credentials and limits that `hyperslab.open` finds."""

from __future__ import annotations

import sys

from hyperslab.archive.far.remote import Remote
from hyperslab.archive.tree.locating import locate
from hyperslab.errors import HyperslabError, UsageError


def answer(url: str) -> bytes:
    """Say how a URL is reached, as crates/hyperslab-preload/src/far/reaching.rs reads it: texts that end with zeros."""
    try:
        remote, _ = locate(url, {})
        if not isinstance(remote, Remote):
            raise UsageError(f"{url} is not a URL")
        reached, limits = remote.reached()
    except HyperslabError as error:
        return _texts("error", str(error))
    asked, config, headers = reached
    most = limits["concurrency"] or 0
    timed = (limits["connect_timeout"], limits["timeout"], limits["patience"], limits["attempts"], most)
    return _texts("url", asked, *timed, len(config), *_flat(config), len(headers), *_flat(headers))


def _flat(pairs: list[tuple[str, str]]) -> list[str]:
    return [text for pair in pairs for text in pair]


def _texts(*texts: object) -> bytes:
    return b"".join(str(text).encode().replace(b"\0", b" ") + b"\0" for text in texts)


if __name__ == "__main__":
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read().decode()))
