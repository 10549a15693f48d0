"""References record where the chunks of archives are, so that you can open them without reading metadata again."""

from hyperslab.references.embedding import EmbeddedIndex, embed
from hyperslab.references.index import SUFFIXES, Index, Referenced, Saved, expanded, index

__all__ = ["SUFFIXES", "EmbeddedIndex", "Index", "Referenced", "Saved", "embed", "expanded", "index"]
