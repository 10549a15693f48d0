"""Writes archives again: in another format, with other chunks and codecs, or with the metadata in front."""

from hyperslab.convert.converting import convert
from hyperslab.convert.saving import save
from hyperslab.convert.settings import Conversion

__all__ = ["Conversion", "convert", "save"]
