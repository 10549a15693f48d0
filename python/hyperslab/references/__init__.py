"""References: where the chunks of archives are, kept in a file, so that opening needs no file of the archive again."""

from hyperslab.references.index import SUFFIXES, Index, Referenced, Saved, expanded, index

__all__ = ["SUFFIXES", "Index", "Referenced", "Saved", "expanded", "index"]
