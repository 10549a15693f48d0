"""Write DMR++ documents for files of h5py, modelled on OPeNDAP's published examples: what `get_dmrpp` would write."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import h5py
import numpy as np

NAMESPACES = 'xmlns="http://xml.opendap.org/ns/DAP/4.0#" xmlns:dmrpp="http://xml.opendap.org/dap/dmrpp/1.0.0#"'
LONGEST_PLAIN_TEXT = 300  # as Hyrax writes it
FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip"}
PADDING = {h5py.h5t.STR_NULLTERM: "null_term", h5py.h5t.STR_NULLPAD: "null_pad", h5py.h5t.STR_SPACEPAD: "space_pad"}


def kind_of(dtype: np.dtype[Any]) -> str:
    """DAP4's name of a number's type."""
    return {"i": "Int", "u": "UInt", "f": "Float"}[dtype.kind] + str(8 * dtype.itemsize)


def text_of(value: Any) -> str:
    """A number as Hyrax prints it: six digits."""
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def attributes(of: Any, indent: str) -> Iterable[str]:
    for name, value in of.attrs.items():
        values = np.asarray(value).reshape(-1)
        if name in ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_NCProperties"):
            continue
        kind = "String" if values.dtype.kind in "OSU" else kind_of(values.dtype)
        yield f"{indent}<Attribute name={quoteattr(name)} type={quoteattr(kind)}>"
        for one in values:
            said = escape(one.decode() if isinstance(one, bytes) else str(one))
            yield f"{indent}    <Value>{said}</Value>"
        yield f"{indent}</Attribute>"


def filters(array: h5py.Dataset) -> str:
    plist = array.id.get_create_plist()
    numbers = [plist.get_filter(place)[0] for place in range(plist.get_nfilters())]
    if not numbers:
        return ""
    levels = " ".join(str(plist.get_filter(k)[2][0]) for k, number in enumerate(numbers) if number == 1)
    level = f' deflateLevel="{levels}"' if levels else ""
    return f'compressionType="{" ".join(FILTERS[number] for number in numbers)}"{level} '


def chunks(array: h5py.Dataset, indent: str, given: str = "") -> Iterable[str]:
    """Where an array's bytes are."""
    plist = array.id.get_create_plist()
    order = "BE" if array.dtype.byteorder == ">" else "LE"
    fill = ' fillValue="0"' if array.dtype.names or array.dtype.kind == "S" else ""
    fill = fill or f' fillValue="{text_of(array.fillvalue)}"'
    if plist.get_layout() == h5py.h5d.COMPACT:
        held = base64.b64encode(array[()].astype(array.dtype).tobytes()).decode()
        yield f'{indent}<dmrpp:chunks{fill} byteOrder="{order}"/>'
        yield f"{indent}<dmrpp:compact>{held}</dmrpp:compact>"
        return
    yield f'{indent}<dmrpp:chunks {filters(array)}{fill.strip()} byteOrder="{order}"{given}>'
    if array.chunks:
        sizes = " ".join(map(str, array.chunks))
        yield f"{indent}    <dmrpp:chunkDimensionSizes>{sizes}</dmrpp:chunkDimensionSizes>"
        for number in range(array.id.get_num_chunks()):
            chunk = array.id.get_chunk_info(number)
            position = ",".join(map(str, chunk.chunk_offset))
            mask = f' fm="{chunk.filter_mask}"' if chunk.filter_mask else ""
            yield (
                f'{indent}    <dmrpp:chunk offset="{chunk.byte_offset}" nBytes="{chunk.size}" '
                f'chunkPositionInArray="[{position}]"{mask}/>'
            )
    elif array.id.get_offset() is not None:
        yield f'{indent}    <dmrpp:chunk offset="{array.id.get_offset()}" nBytes="{array.id.get_storage_size()}"/>'
    yield f"{indent}</dmrpp:chunks>"


def listed_text(text: str, count: int = 1) -> str:
    """A text as so many elements: long ones are deflated, with their length as `s`."""
    held = text.encode()
    counted = f' c="{count}"' if count > 1 else ""
    if len(held) <= LONGEST_PLAIN_TEXT:
        return f"<v{counted}>{escape(text)}</v>"
    return f'<v{counted} s="{len(held)}">{base64.b64encode(zlib.compress(held)).decode()}</v>'


def dimensions(array: h5py.Dataset, indent: str) -> Iterable[str]:
    for axis, length in enumerate(array.shape):
        scales = array.dims[axis].values() if array.dims else []
        own = array.name if array.is_scale else None
        name = own or (scales[0].name if scales else None)
        yield f"{indent}<Dim name={quoteattr(name)}/>" if name else f'{indent}<Dim size="{length}"/>'


def variable(array: h5py.Dataset, indent: str) -> Iterable[str]:
    name, inner, given = array.name.rpartition("/")[2], indent + "    ", ""
    enum = h5py.check_enum_dtype(array.dtype)
    kind = "Enum" if enum else "String" if array.dtype.kind in "SO" else None
    kind = kind or ("Structure" if array.dtype.names else kind_of(array.dtype))
    refers = f' enum="/{name}_enum"' if enum else ""
    yield f"{indent}<{kind} name={quoteattr(name)}{refers}>"
    if array.dtype.names:
        for field in array.dtype.names:
            of = array.dtype[field]
            yield f"{inner}<{kind_of(of.base)} name={quoteattr(field)}>"
            yield from (f'{inner}    <Dim size="{length}"/>' for length in of.shape)
            yield f"{inner}</{kind_of(of.base)}>"
        offsets = [array.dtype.fields[field][1] for field in array.dtype.names][1:]
        given = f' structOffset="{" ".join(map(str, [*offsets, array.dtype.itemsize]))}"'
    yield from dimensions(array, inner)
    yield from attributes(array, inner)
    if array.dtype.kind == "O":
        yield f"{inner}<dmrpp:vlsa>"
        texts = np.asarray(array.asstr()[()]).reshape(-1).tolist()
        yield from (f"{inner}    {listed_text(text, len(list(same)))}" for text, same in groupby(texts))
        yield f"{inner}</dmrpp:vlsa>"
    else:
        if array.dtype.kind == "S" and array.shape:
            pad = PADDING[array.id.get_type().get_strpad()]
            width = array.dtype.itemsize
            yield f'{inner}<dmrpp:FixedLengthStringArray string_length="{width}" pad="{pad}"/>'
        yield from chunks(array, inner, given)
    yield f"{indent}</{kind}>"


def group(of: h5py.Group, indent: str) -> Iterable[str]:
    for name, array in of.items():
        if isinstance(array, h5py.Dataset) and array.is_scale:
            yield f'{indent}<Dimension name={quoteattr(name)} size="{array.shape[0]}"/>'
    for name, array in of.items():
        enum = h5py.check_enum_dtype(array.dtype) if isinstance(array, h5py.Dataset) else None
        if enum:
            yield f'{indent}<Enumeration name="{name}_enum" basetype="{kind_of(array.dtype)}">'
            yield from (f'{indent}    <EnumConst name="{key}" value="{value}"/>' for key, value in enum.items())
            yield f"{indent}</Enumeration>"
    for array in of.values():
        if isinstance(array, h5py.Dataset):
            yield from variable(array, indent)
    yield from attributes(of, indent)
    for name, inner in of.items():
        if isinstance(inner, h5py.Group):
            yield f"{indent}<Group name={quoteattr(name)}>"
            yield from group(inner, indent + "    ")
            yield f"{indent}</Group>"


def document(path: Path, href: str = "OPeNDAP_DMRpp_DATA_ACCESS_URL", version: str | None = "3.21.1-451") -> str:
    """The document of a file."""
    said = f' dmrpp:version="{version}"' if version else ""
    with h5py.File(path) as file:
        lines = list(group(file, "    "))
    head = f'<Dataset {NAMESPACES} dapVersion="4.0" dmrVersion="1.0" name="{path.name}" dmrpp:href="{href}"{said}>'
    built = [
        '    <Attribute name="build_dmrpp_metadata" type="Container">',
        '        <Attribute name="bes" type="String"><Value>3.21.1</Value></Attribute>',
        "    </Attribute>",
    ]
    return "\n".join(['<?xml version="1.0" encoding="ISO-8859-1"?>', head, *lines, *built, "</Dataset>", ""])


def of_values(body: str, name: str = "made.h5") -> str:
    """A document with a given body."""
    return f'<Dataset {NAMESPACES} name="{name}" dmrpp:href="{name}" dmrpp:version="3.21.1">{body}</Dataset>'


def missing_data(values: np.ndarray[Any, Any]) -> str:
    """Values as Hyrax puts them into a document."""
    held = values.tobytes() if values.size == 1 else zlib.compress(values.tobytes())
    return f"<dmrpp:missingdata>{base64.b64encode(held).decode()}</dmrpp:missingdata>"
