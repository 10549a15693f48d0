"""Libraries that only some work needs: said before it begins, with how to get them."""

from __future__ import annotations

from importlib.util import find_spec

from hyperslab.errors import MissingLibrary

REPORT = ("pyarrow", "matplotlib", "plotly")


def need(doing: str, extra: str, *libraries: str) -> None:
    """Go on only if libraries are installed, which an extra of ours brings.

    Raises:
        MissingLibrary: One of them is not.
    """
    missing = [library for library in libraries if not _is_there(library)]
    if missing:
        raise MissingLibrary(f"{doing} needs {', '.join(missing)}: pip install 'hyperslab[{extra}]'")


def need_h5py(doing: str) -> None:
    """Go on only if h5py is installed: versions are read without it, but not written."""
    need(doing, "versions", "h5py")


def need_report(doing: str) -> None:
    """Go on only if what draws figures and writes tables is installed."""
    need(doing, "report", *REPORT)


def _is_there(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):
        return False
