"""`hyperslab read` prints or saves a selection of an array, or shows what reading it would take."""

from __future__ import annotations

import ast
import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperslab.cli.archives import array_of, open_archive
from hyperslab.cli.arguments import Allowed, Concat, FileArgument, Options
from hyperslab.cli.guarded import is_full
from hyperslab.cli.output import lines, plain
from hyperslab.errors import HyperslabError, ReadError, TooLargeForMemory, UsageError, printable
from hyperslab.replacing import allocate, refuse_devices, replacing

if TYPE_CHECKING:
    import numpy as np

    from hyperslab.archive.tree.array import Array

MOST_PRINTED_NBYTES = 1 << 30  # NumPy prints only the edges of a large array
MOST_JSON_ELEMENTS = 100_000
PLAN = ("element_count", "chunk_count", "missing_chunk_count", "request_count", "fetched_nbytes", "decoded_nbytes",
        "output_nbytes", "read_amplification")  # fmt: skip


def read(
    file: FileArgument,
    array: Annotated[
        str | None, typer.Argument(help="Path of the array in the file, with '/' between groups; or write FILE:ARRAY.")
    ] = None,
    selection: Annotated[str, typer.Argument(help="Indices as between NumPy's brackets: '0, ::4, 10:20'.")] = "...",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Save as .npy instead of printing.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (small selections only).")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Print what reading would take, and read nothing.")] = False,
    decode: Annotated[
        bool, typer.Option("--decode", help="Apply CF's attributes: masks, factors and offsets, times as dates.")
    ] = False,
    option: Options = None,
    allowed: Allowed = None,
    concat: Concat = None,
) -> None:
    """Read a selection of an array.

    Example: hyperslab read ocean.nc sst '0, ::4, 10:20'
    """
    _check(output, as_json, plan, decode)
    file, array, selection = _asked(file, array, selection)
    key = parse_selection(selection)
    with open_archive(file, option or [], concat, allowed) as root:
        chosen = array_of(root, array)
        try:
            _do(chosen, key, output, as_json, plan, decode)
        except MemoryError as error:  # first, as TooLargeForMemory is a ValueError too
            said = f"{chosen.name}: not enough memory for the selection; select less: {error}"
            raise TooLargeForMemory(said) from error
        except HyperslabError:
            raise
        except (IndexError, ValueError, TypeError) as error:
            raise UsageError(f"selection {selection!r} of {chosen.name}, shape {chosen.shape}: {error}") from error
        except BrokenPipeError:
            raise
        except OSError as error:  # from h5py, if it does the reading, or from the output
            if is_full(error):
                raise
            raise ReadError(f"array {chosen.name} of {file}: {error}") from error


def _check(output: Path | None, as_json: bool, plan: bool, decode: bool) -> None:
    """Refuse what cannot end well, before any file is opened."""
    if plan and decode:
        raise UsageError("--plan reads nothing, so there is nothing to --decode: use one of them")
    if output is None:
        return
    if as_json or plan:
        raise UsageError("-o cannot be combined with --json or --plan: use one of them")
    if output.suffix.lower() not in ("", ".npy"):
        raise UsageError(f"{output}: -o writes only .npy: name the file {output.stem}.npy")
    refuse_devices(output)


def _asked(file: str, array: str | None, selection: str) -> tuple[str, str, str]:
    """The file, the array and the selection, whether they were written as FILE ARRAY or as FILE:ARRAY."""
    if ":" in file:
        from hyperslab.model.file_layout import file_and_array

        path, name = file_and_array(file)
        if name:
            return path, name, selection if array is None else array
    if array is None:
        raise UsageError(
            f"no array is named: write hyperslab read {file} ARRAY; hyperslab info {file} lists the arrays"
        )
    return file, array, selection


def _do(array: Array, key: Any, output: Path | None, as_json: bool, plan: bool, decode: bool) -> None:
    if plan:
        _print_plan(array, key, as_json)
    elif output is not None:
        _save(array, key, output, decode)
    elif as_json:
        _print_json(array, key, decode)
    else:
        _check_printable(array, key)
        typer.echo(lines(str(_values(array, key, decode))))


def _values(array: Array, key: Any, decode: bool) -> Any:
    values = array.read(key)
    if not decode:
        return values
    import numpy as np

    from hyperslab.archive.conventions.unpacking import unpacked

    return unpacked(array, np.asarray(values))


def parse_selection(text: str) -> Any:
    """The index that a text such as `0, ::4` stands for: integers, slices, lists of integers, and an ellipsis."""
    if not text.strip():
        return ...
    try:
        tree = ast.parse(f"_[{text}]", mode="eval").body
        if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name):
            return _item(tree.slice)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise UsageError(f"selection {text!r} is not valid: give an index or a slice for each axis, as in '0, ::4, 10:20'")


def _item(node: ast.expr) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_item(part) for part in node.elts)
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else _number(part) for part in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.List):
        return [_number(part) for part in node.elts]
    if isinstance(node, ast.Constant) and node.value is ...:
        return ...
    return _number(node)


def _number(node: ast.expr) -> int:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return sign * node.value
    raise ValueError("not a whole number")


def _element_count(array: Array, key: Any) -> int:
    from hyperslab.archive.tree.indexing import normalize

    return math.prod(normalize(key, array.shape).full_shape)


def _check_printable(array: Array, key: Any) -> None:
    from hyperslab.quantities import nbytes_text

    nbytes = _element_count(array, key) * array.dtype.itemsize
    if nbytes > MOST_PRINTED_NBYTES:
        raise UsageError(
            f"{array.name}: the selection has {nbytes_text(nbytes)}, and only its edges would be printed; "
            "give a smaller SELECTION, or save it with -o FILE.npy"
        )


def _print_plan(array: Array, key: Any, as_json: bool) -> None:
    from hyperslab.archive.tree.indexing import normalize

    made, shape = array.plan(key), normalize(key, array.shape).shape
    facts = {"shape": list(shape), **{name: getattr(made, name) for name in PLAN}}
    if as_json:
        typer.echo(json.dumps({"array": array.name, **facts}, indent=1))
        return
    typer.echo(_plan_in_words(printable(array.name), shape, made))


def _plan_in_words(name: str, shape: tuple[int, ...], made: Any) -> str:
    from hyperslab.quantities import nbytes_text

    amplification = "–" if made.read_amplification is None else f"{made.read_amplification:.3g}"
    lines = {
        "output": f"shape {shape}, {nbytes_text(made.output_nbytes)}",
        "chunks": f"{made.chunk_count}, of which {made.missing_chunk_count} were never written",
        "requests": f"{made.request_count}",
        "bytes to fetch": nbytes_text(made.fetched_nbytes),
        "bytes to decode": nbytes_text(made.decoded_nbytes),
        "read amplification": amplification,
    }
    return "\n".join([name, *(f"  {what:<19} {said}" for what, said in lines.items())])


def _print_json(array: Array, key: Any, decode: bool) -> None:
    import numpy as np

    count = _element_count(array, key)
    if count > MOST_JSON_ELEMENTS:
        raise UsageError(f"{array.name}: {count} elements are too many for JSON; save them with -o FILE.npy")
    values = np.asarray(_values(array, key, decode))
    shown = {"array": array.name, "shape": list(values.shape), "dtype": str(values.dtype if decode else array.dtype),
             "values": plain(values)}  # fmt: skip
    typer.echo(json.dumps(shown))


def _save(array: Array, key: Any, output: Path, decode: bool) -> None:
    with replacing(output) as beside, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # NumPy warns that it does not save a dtype's metadata
        _write_npy(array, key, beside, decode)


def _write_npy(array: Array, key: Any, path: Path, decode: bool) -> None:
    """Read fixed-size elements straight into the file, so that the selection may be larger than memory."""
    import numpy as np

    from hyperslab.archive.tree.indexing import normalize

    shape = normalize(key, array.shape).shape
    if not array.dtype.hasobject and 0 not in shape and not decode:
        whole = (*shape, *array.dtype.shape)
        out: np.memmap[Any, Any] = np.lib.format.open_memmap(path, mode="w+", dtype=array.dtype.base, shape=whole)
        allocate(path, out.offset)
        array.read(key, out=out)
        return
    values = np.asarray(_values(array, key, decode))
    if values.dtype.hasobject:
        values = _fixed_text(array, values)
    with path.open("wb") as file:
        np.save(file, values, allow_pickle=False)


def _fixed_text(array: Array, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert variable-length text to NumPy's fixed-length text, which .npy can hold."""
    if not all(isinstance(one, str) for one in values.flat):
        raise UsageError(f"{array.name}: .npy cannot hold elements of varying length ({array.dtype}); use --json")
    fixed = values.astype(str)
    if (fixed != values).any():  # NumPy drops zeros at the end of text
        raise UsageError(f"{array.name}: some of its text ends in null characters, which .npy cannot hold; use --json")
    return fixed
