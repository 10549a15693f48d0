"""The codecs that `create_dataset` was given, and whether they are those of an existing array."""

from __future__ import annotations

from typing import Any

NAMES = ("compression", "compression_opts", "scaleoffset", "shuffle", "fletcher32")
GIVEN_NOTHING: Any = type("GivenNothing", (), {"__repr__": lambda _: "<as before>"})()


def given(*values: Any) -> dict[str, Any]:
    """The options that were given, in the order of `NAMES`."""
    return {name: value for name, value in zip(NAMES, values, strict=True) if value is not GIVEN_NOTHING}


def settings_of(raw: Any) -> dict[str, Any]:
    """The options that an h5py array was created with."""
    settings = {name: getattr(raw, name) for name in NAMES}
    if settings["compression"] in (None, "unknown"):
        settings["compression"] = settings["compression_opts"] = None
        for number, options in getattr(raw, "_filters", {}).items():
            if number.isdecimal():
                settings["compression"], settings["compression_opts"] = int(number), options
    return {name: value for name, value in settings.items() if value is not None and value is not False}


def check_codecs(asked: dict[str, Any], raw: Any, path: str) -> None:
    """Refuse codecs that contradict those of earlier versions.

    Raises
    ------
    ValueError
        They differ.
    """
    if raw is None:
        return
    theirs = {name: None if name.startswith("comp") or name == "scaleoffset" else False for name in NAMES}
    theirs |= settings_of(raw)
    for name, value in asked.items():
        wanted = getattr(value, "filter_id", value)  # an object of hdf5plugin
        if name == "compression" and isinstance(wanted, int) and 0 <= wanted < 10:
            wanted = "gzip"
        if name == "compression_opts" and not isinstance(theirs["compression"], str | None):
            continue  # a plugin writes other values than it was given
        if wanted is not None and wanted is not False and wanted != theirs[name]:
            raise ValueError(
                f"{path} has {name}={theirs[name]!r} in earlier versions, not {wanted!r}: leave it out, or change"
                " all versions with modify_metadata"
            )
