"""References record where the chunks of archives are, so that you can open them without reading metadata again."""

from hyperslab.references.index import SUFFIXES, Index, Referenced, Saved, expanded, index

__all__ = ["SUFFIXES", "Index", "Referenced", "Saved", "expanded", "index"]
