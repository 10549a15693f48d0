"""Writes archives again: in another format, with other chunks and codecs, or with the metadata in front."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperslab.conversion.converting import convert
    from hyperslab.conversion.saving import save
    from hyperslab.conversion.settings import Conversion

__all__ = ["Conversion", "convert", "save"]
_HOMES = {"Conversion": "settings", "convert": "converting", "save": "saving"}


def __getattr__(name: str) -> Any:
    """Import what converts on first use: advice needs only the file that it writes."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
