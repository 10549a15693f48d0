"""The user's own array for `--data FILE:ARRAY`, read through whichever format of the table can open the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hyperslab.errors import HyperslabError, UsageError
from hyperslab.formats import FORMATS, format_class, make_format
from hyperslab.formats.contract import ArrayFile


def load_user_array(text: str) -> np.ndarray:
    """Load FILE:ARRAY, in native byte order; raises UsageError that names the file, what is wrong and what there is."""
    name, _, array = text.rpartition(":")
    path = Path(name or text)
    if not path.exists():
        raise UsageError(
            f"--data {text}: there is no file {path}; give FILE:ARRAY, for example sst.nc:surface_temperature"
        )
    opened = _opened(path)
    try:
        known = opened.array_names()
        if not name or array not in known:
            found = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
            raise UsageError(f"--data {text}: {path} has no array {array!r}; it has {found or 'none'}")
        values = opened.open_array(array).read()
    except HyperslabError:
        raise
    except Exception as error:
        raise UsageError(f"--data {text}: cannot be read ({type(error).__name__}: {error})") from error
    finally:
        opened.close()
    return _usable(text, np.asarray(values))


def _usable(text: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iuf":
        raise UsageError(f"--data {text}: dtype {values.dtype} cannot be compared across formats: only numbers can")
    if values.ndim == 0 or values.size == 0:
        raise UsageError(f"--data {text}: shape {values.shape} holds nothing to compare")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _opened(path: Path) -> ArrayFile:
    """The file, opened by the first installed format that claims its extension and can."""
    suffix = "".join(path.suffixes[-1:]).lower()
    claiming, refusals = [], []
    for name in FORMATS:
        known = format_class(name)
        if suffix in (known.extension, *known.aliases) and known.capabilities.self_describing:
            claiming.append(name)
    for name in claiming:
        try:
            format_class(name).library()
            return make_format(name).open(path)
        except Exception as error:
            refusals.append(f"{name}: {' '.join(str(error).split())}")
    if refusals:
        raise UsageError(f"{path} cannot be opened ({'; '.join(refusals)})")
    raise UsageError(
        f"{path}: no format of the table reads files that end in {suffix!r}; `hyperslab formats` lists them"
    )
