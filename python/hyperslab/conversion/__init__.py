"""Writes archives again: in another format, with other chunks and codecs, or with the metadata in front."""

from hyperslab.conversion.converting import convert
from hyperslab.conversion.saving import save
from hyperslab.conversion.settings import Conversion

__all__ = ["Conversion", "convert", "save"]
