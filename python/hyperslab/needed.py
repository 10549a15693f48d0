"""Check for optional libraries before work begins, and say how to install missing ones."""

from __future__ import annotations

from importlib.util import find_spec

from hyperslab.errors import MissingLibrary

REPORT = ("pyarrow", "matplotlib", "plotly")


def need(doing: str, extra: str, *libraries: str) -> None:
    """Check that libraries are installed; the message names the extra of hyperslab that installs them.

    Raises
    ------
    MissingLibrary
        One of them is not installed.
    """
    missing = [library for library in libraries if not _is_there(library)]
    if missing:
        raise MissingLibrary(f"{doing} needs {', '.join(missing)}: pip install 'hyperslab[{extra}]'")


def need_h5py(doing: str) -> None:
    """Check that h5py is installed: versions can be read without it, but not written."""
    need(doing, "versions", "h5py")


def need_report(doing: str) -> None:
    """Check that the libraries that draw figures and write tables are installed."""
    need(doing, "report", *REPORT)


def _is_there(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):
        return False
