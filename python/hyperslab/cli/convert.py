"""`hyperslab convert` writes an archive again: in another format, or with other chunks and codecs."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperslab.cli.archives import open_archive
from hyperslab.cli.arguments import Allowed, Concat, Options
from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.sizes import nbytes_of
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group
    from hyperslab.conversion import Conversion

PurposeOption = Annotated[
    str | None,
    typer.Option(
        "--for", help="cloud or cmip7 (what that archive asks for): change only what does not suit this purpose."
    ),
]
InPlace = Annotated[
    bool, typer.Option("--in-place", help="Replace each source by its converted and verified copy (HDF5).")
]
VerifyOption = Annotated[
    str,
    typer.Option(
        help="How to verify the copy. checksum: read it back and compare; library: do so through h5py or zarr; none."
    ),
]
MOST_NAMED = 20
LEAST_MEMORY_NBYTES = 1 << 20
# PATH:VALUE, and PATH:CODEC: there, a colon before a number belongs to the codec, as in deflate:4.
LAST_VALUE = re.compile(r"(?:(.*):)?([^:]*)", re.DOTALL)
LAST_CODEC = re.compile(r"(?:(.*):(?!\d))?([^:]*(?::\d[^:]*)*)", re.DOTALL)


def convert(
    sources: Annotated[
        list[str],
        typer.Argument(help="What to convert, as for `read`; several with --concat or -o. The target is last."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="A folder: each file is written into it, under its own name. Or one source's target."
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="hdf5, netcdf4, zarr2 or zarr3 (default: that of the target's suffix).")
    ] = None,
    chunks: Annotated[
        list[str] | None,
        typer.Option(help="1,100 or time=1,lat=100; PATH:1,100 for one array; -1: whole axis; contiguous. Repeatable."),
    ] = None,
    shards: Annotated[list[str] | None, typer.Option(help="The same for shards of Zarr 3. Repeatable.")] = None,
    codec: Annotated[
        list[str] | None,
        typer.Option(help="Codecs: shuffle+deflate:4, zstd:3, none, ...; PATH:CODEC for one array. Repeatable."),
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="A file of `hyperslab advise -o`: chunks, shards and codecs of each array.")
    ] = None,
    relayout: Annotated[
        bool, typer.Option("--relayout", help="Copy chunks as they are stored, and put the metadata in front (HDF5).")
    ] = False,
    purpose: PurposeOption = None,
    in_place: InPlace = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what --for would do.")] = False,
    memory: Annotated[str | None, typer.Option(help="The most memory for elements, such as 2GiB.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads (default: HYPERSLAB_THREADS, or one per core).")] = None,
    verify: VerifyOption = "checksum",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing target.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished conversion.")] = False,
    skip_unsupported: Annotated[
        bool, typer.Option("--skip-unsupported", help="Leave out what the target cannot hold.")
    ] = False,
    scheduler: Annotated[str | None, typer.Option(help="A Dask scheduler whose workers read and encode.")] = None,
    option: Options = None,
    allowed: Allowed = None,
    concat: Concat = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write an archive again, in another format or with other chunks and codecs.

    The source is never changed. The target appears under its name when it is complete. After an interruption, the same
    command with --resume continues.

    Example: hyperslab convert maps.nc series.nc --chunks time=-1,lat=10,lon=10 --codec shuffle+deflate:4
    Example: hyperslab convert 2019.nc 2020.nc 2021.nc -o better --like advice.json
    Example: hyperslab convert --for cmip7 --in-place tas_*.nc pr_*.nc
    """
    if dry_run:
        _say_plans(sources if in_place or output else sources[:-1] or sources, purpose, concat, option or [], allowed)
        return
    given, target, folder = (_given_in_place if in_place else _sources_and_target)(sources, concat, output)
    from hyperslab.conversion.converting import check_libraries, format_of
    from hyperslab.conversion.wishes import wish

    if folder is None and not in_place:
        check_libraries(format_of(Path(target), format), verify)
    wishes: dict[str, Any] = {
        "chunks": _by_path(chunks), "shards": _by_path(shards), "codec": _by_path(codec, LAST_CODEC), "like": like,
    }  # fmt: skip
    asked = wish(**wishes)
    ways: dict[str, Any] = {
        "format": format, "relayout": relayout, "memory": _memory(memory), "verify": verify, "overwrite": overwrite,
        "resume": resume, "threads": _threads() if threads is None else threads, "skip_unsupported": skip_unsupported,
        "scheduler": scheduler, "purpose": purpose,
    }  # fmt: skip
    if folder is not None or in_place:
        _each(given, folder, option or [], allowed, {**wishes, **ways}, as_json=as_json)
        return
    opened = open_archive(given if concat is not None else given[0], option or [], concat, allowed)
    _one(opened, target, {**wishes, **ways}, asked, as_json=as_json)


def _one(opened: Group, target: str, options: dict[str, Any], asked: object, *, as_json: bool) -> None:
    """Convert one archive, which is closed then."""
    from hyperslab.conversion import convert as run

    named, source_format = opened.filename, opened.format
    log = console(stderr=True)

    def say(seconds: float) -> None:
        log.print(line(f"predicted: {_duration(seconds)}"), soft_wrap=True)

    with opened, live(log, "MB") as progress:
        done = run(opened, target, progress=progress, predicted=say, **options)
    _print(done, as_json=as_json)
    if not as_json and not options["relayout"] and options["purpose"] is None:  # no other tool does that
        _say_equivalents(named, target, source_format, options["format"], asked)


def _sources_and_target(
    names: list[str], concat: str | None, output: Path | None
) -> tuple[list[str], str, Path | None]:
    """The sources, the target, and the target as a folder if each source gets a file of its own there."""
    if output is not None and _names_a_file(output):
        if len(names) > 1 and concat is None:
            raise UsageError(
                f"-o {output} names a file: several sources need -o FOLDER, or --concat DIMENSION for one file of them"
            )
        return names, str(output), None
    if output is not None:
        if concat is not None:
            raise UsageError("--concat makes one file of several: -o is then that file, such as -o all.nc")
        return names, str(output), output
    if len(names) < 2:
        raise UsageError("give a source and a target: hyperslab convert SOURCE TARGET")
    if len(names) > 2 and concat is None:
        raise UsageError("several sources need -o FOLDER, or --concat DIMENSION; with it, the last name is the target")
    return names[:-1], names[-1], None


def _given_in_place(names: list[str], concat: str | None, output: Path | None) -> tuple[list[str], str, Path | None]:
    """The same for files that are replaced."""
    if output is not None or concat is not None:
        raise UsageError("--in-place replaces each file by itself: leave out -o and --concat")
    return names, names[0], None


def _say_plans(
    sources: list[str], purpose: str | None, concat: str | None, option: list[str], allowed: list[str] | None
) -> None:
    """Say what would be done, and do nothing."""
    from hyperslab.conversion.purposes import plan_for

    if purpose is None:
        raise UsageError("--dry-run says what --for would do: add --for cmip7 or --for cloud")
    out = console()
    for given in [sources] if concat is not None else sources:
        with open_archive(given, option, concat, allowed) as opened:
            for sentence in plan_for(opened, purpose).sentences:
                out.print(line(f"{opened.filename}: {sentence}"), soft_wrap=True)


def _names_a_file(path: Path) -> bool:
    """Whether a path has the suffix of a format, and is no folder that happens to be called so."""
    from hyperslab.conversion.suffixes import SUFFIXES

    meant = SUFFIXES.get(path.suffix.lower())
    return meant is not None and (meant.startswith("zarr") or not path.is_dir())


def _each(
    sources: list[str],
    folder: Path | None,
    option: list[str],
    allowed: list[str] | None,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Convert several files into a folder, or in place. One that fails is named and leaves the others; then the exit
    status is 1.
    """
    from hyperslab.cli.archives import allowed_prefixes, storage_options
    from hyperslab.conversion.several import convert_each, convert_in_place

    opening = {"storage_options": storage_options(option), "allowed": allowed_prefixes(allowed)}
    log = console(stderr=True)
    said, failed = [], 0
    with live(log, "MB") as progress:
        each = {**options, "opening": opening, "progress": progress}
        for one in convert_in_place(sources, **each) if folder is None else convert_each(sources, folder, **each):
            failed += one.error is not None
            if as_json:
                done = {} if one.done is None else {**vars(one.done), "target": str(one.target)}
                error = None if one.error is None else str(one.error)
                said.append({"source": one.source, "target": str(one.target), **done, "error": error})
            elif one.done is not None:
                _print(one.done, as_json=False)
            elif one.error is None:
                console().print(line(f"{one.target}: there already, from {one.source}"), soft_wrap=True)
            if one.error is not None:
                log.print(line(f"hyperslab: {one.source} failed: {one.error}"), soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(said, indent=1))
    if failed:
        log.print(line(f"hyperslab: {failed} of {len(sources)} files failed; the others are written"), soft_wrap=True)
        sys.exit(1)


def _by_path(given: list[str] | None, last: re.Pattern[str] = LAST_VALUE) -> dict[str, str] | None:
    """Values by array; "" for all arrays."""
    if given is None:
        return None
    by_path: dict[str, str] = {}
    for one in given:
        path, value = last.fullmatch(one).groups("")  # type: ignore[union-attr] # they fit all texts
        if path in by_path:
            raise UsageError(f"{one!r}: there is another value for {path or 'all arrays'} already")
        by_path[path] = value
    return by_path


def _duration(seconds: float) -> str:
    """A time that was only predicted."""
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 100 else f"about {minutes // 60} h {minutes % 60} min"


def _memory(given: str | None) -> int | None:
    """The most bytes to use. Less than the buffers alone take is refused."""
    nbytes = nbytes_of(given, "--memory")
    if nbytes is not None and nbytes < LEAST_MEMORY_NBYTES:
        said = "the least that works is 1MiB, or two chunks or shards if these are larger"
        raise UsageError(f"--memory {given}: {said}")
    return nbytes


def _threads() -> int | None:
    given = os.environ.get("HYPERSLAB_THREADS", "")
    return int(given) if given.isdigit() and int(given) > 0 else None


def _say_equivalents(source: str, target: str, source_format: str, format: str | None, asked: object) -> None:
    from hyperslab.conversion.converting import format_of
    from hyperslab.conversion.equivalents import equivalents

    chosen = format_of(Path(target), format)
    for call in equivalents(source, target, source_format, chosen, asked):  # type: ignore[arg-type]
        console(stderr=True).print(line(f"about the same: {call}"), soft_wrap=True)


def _print(done: Conversion, *, as_json: bool) -> None:
    from hyperslab.archive.views import display
    from hyperslab.quantities import nbytes_text

    if as_json:
        typer.echo(json.dumps({**vars(done), "target": str(done.target)}, indent=1))
        return
    out = console()
    if done.is_unchanged:
        out.print(line(f"{done.target}: unchanged, it suits as it is"), soft_wrap=True)
        return
    arrays = display.counted(done.array_count, "array", "arrays")
    said = f"{done.target}: {arrays}, {nbytes_text(done.stored_nbytes)} in {done.seconds:.1f} s"
    out.print(
        line(f"{said}, {'not verified' if done.verified == 'none' else f'verified by {done.verified}'}"), soft_wrap=True
    )
    for what, listed in (("note", done.notes), ("left out", done.losses)):
        for path, reason in listed[:MOST_NAMED]:
            out.print(line(f"{what}: {path}: {reason}"), soft_wrap=True)
        if len(listed) > MOST_NAMED:
            out.print(line(f"{what}: {len(listed) - MOST_NAMED} more"))
