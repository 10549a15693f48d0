"""Your own array for `--data FILE:ARRAY`, read by whichever supported format can open the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hyperslab.errors import HyperslabError, UsageError
from hyperslab.formats import FORMATS, format_class, make_format
from hyperslab.formats.contract import ArrayFile
from hyperslab.meant import meant_or_known


def load_user_array(text: str) -> np.ndarray:
    """Load FILE:ARRAY in native byte order. Raises UsageError with the file, the problem, and the arrays that exist."""
    name, _, array = text.rpartition(":")
    path = Path(name or text)
    if not path.exists():
        raise UsageError(f"--data {text}: there is no file {path}; give FILE:ARRAY, such as sst.nc:surface_temperature")
    opened = _opened(path)
    try:
        known = opened.array_names()
        if not name or array not in known:
            if not name:
                listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
                raise UsageError(
                    f"--data {text}: name an array, as in --data {text}:{known[0] if known else 'ARRAY'}; "
                    f"it has {listed or 'none'}"
                )
            near = meant_or_known(array, known, "it has no arrays")
            raise UsageError(f"--data {text}: {path} has no array {array!r}{near}")
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
        raise UsageError(
            f"--data {text}: formats cannot be compared with dtype {values.dtype}: only numbers can be used"
        )
    if values.ndim == 0 or values.size == 0:
        raise UsageError(f"--data {text}: an array of shape {values.shape} has no elements to compare")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _opened(path: Path) -> ArrayFile:
    """Open the file with the first installed format that has its extension and can read it."""
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
        f"{path}: no supported format reads files that end in {suffix!r}; `hyperslab formats` lists the formats"
    )
