"""The old home of `hyperslab.conversion.advice`: its names still work here, with a DeprecationWarning."""

from __future__ import annotations

import warnings
from typing import Any

from hyperslab.conversion import advice

_OLD = {"AdviceFile": advice.AdviceFile, "AdvisedArray": advice.AdvisedArray, "load_advice": advice.AdviceFile.read}


def __getattr__(name: str) -> Any:
    if name not in _OLD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = "AdviceFile.read" if name == "load_advice" else name
    said = f"hyperslab.advise.advice.{name} is now hyperslab.conversion.advice.{new}"
    warnings.warn(said, DeprecationWarning, stacklevel=2)
    return _OLD[name]
