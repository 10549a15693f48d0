"""`hyperslab predict --processes`: what a workload costs if several processes share it on several data servers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hyperslab.cli.arguments import stripe_of
from hyperslab.cli.output import console
from hyperslab.cli.predict_array import profile_or_offer, profile_text
from hyperslab.errors import UsageError
from hyperslab.meant import meant_or_choose

if TYPE_CHECKING:
    from hyperslab.model.hdf5_settings import Hdf5Settings
    from hyperslab.model.libraries import Layout
    from hyperslab.model.workload import Workload
    from hyperslab.parallel.predict import ParallelPrediction, Sharing

Processes = Annotated[int | None, typer.Option("--processes", min=1, help="Processes that share the accesses.")]
Servers = Annotated[int | None, typer.Option("--servers", min=1, help="Data servers of the parallel file system.")]
StripeText = Annotated[
    str | None, typer.Option("--stripe", help="Stripes of a shared file: SIZE:COUNT, such as 1MiB:4, or SIZE alone.")
]
PartitionName = Annotated[
    str | None,
    typer.Option("--partition", help="Which process owns which chunks: rows, columns, blocks, round-robin, random."),
]
Collective = Annotated[
    bool, typer.Option("--collective", help="HDF5's processes gather their requests (collective I/O).")
]


@dataclass(frozen=True)
class ParallelOptions:
    """What the command line says of processes and servers; the rest is in the workload file."""

    processes: int | None
    servers: int | None
    stripe: str | None
    partition: str | None
    collective: bool

    def asked_for(self, workload: Path) -> bool:
        """Whether the command line, or a workload file, has several processes or data servers."""
        if any(each not in (None, False) for each in vars(self).values()):
            return True
        from hyperslab.model.workload_file import load_workloads

        return any(each.is_parallel for each in load_workloads(workload).values())


def predict_processes(
    path: Path,
    texts: list[str],
    given: ParallelOptions,
    libraries: list[str] | None,
    profile_path: Path | None,
    cache: Any,
    hdf5: Hdf5Settings,
    as_json: bool,
) -> None:
    """Price a workload that several processes share, and print one table."""
    from hyperslab.model.predict import parse_layout
    from hyperslab.model.workload_file import load_workload
    from hyperslab.parallel.predict import predict_parallel
    from hyperslab.parallel.profile import is_parallel_profile, load_parallel_profile
    from hyperslab.parallel.published_profile import is_published, published_profile

    workload = load_workload(path)
    layouts = [parse_layout(text, workload.array.shape) for text in texts]
    if not layouts:
        raise UsageError("no layouts: give at least one chunk shape, such as --layout 100x8")
    trained: Any
    if profile_path is not None and not profile_path.exists() and is_published(str(profile_path)):
        trained = published_profile(str(profile_path), given.processes or workload.processes)
        store, servers = trained.store, given.servers or workload.servers or trained.servers
    elif profile_path is not None and is_parallel_profile(profile_path):
        trained = load_parallel_profile(profile_path)
        store, servers = trained.store, given.servers or workload.servers or trained.servers
    else:
        trained = profile_or_offer(profile_path, console(stderr=True))
        store, servers = profile_text(trained), given.servers or workload.servers or 1
    predictions: list[ParallelPrediction] = []
    for layout in layouts:
        sharing = _sharing(workload, layout, given, servers)
        predictions += predict_parallel(
            workload, [layout], sharing, trained, libraries=libraries, cache=cache, hdf5=hdf5
        )
    predictions.sort(key=lambda each: each.seconds)
    if as_json:
        document = {"store": store, "processes": sharing.processes, "servers": servers, "partition": sharing.partition}
        typer.echo(json.dumps({**document, "predictions": [each.to_dict() for each in predictions]}, indent=1))
        return
    _print(predictions, sharing, store)


def _sharing(workload: Workload, layout: Layout, given: ParallelOptions, servers: int) -> Sharing:
    from hyperslab.parallel.partition import PARTITIONS
    from hyperslab.parallel.predict import Sharing
    from hyperslab.parallel.striping import Striping

    partition = next((one for one in PARTITIONS if one == (given.partition or workload.partition)), None)
    if partition is None:
        near = meant_or_choose(str(given.partition), PARTITIONS)
        raise UsageError(f"--partition {given.partition} is not a partition{near}")
    size, count = stripe_of(given.stripe) if given.stripe is not None else (None, None)
    declared = workload.stripe
    size = size or (declared.size if declared else None) or prod(layout.chunk_shape) * workload.array.element_nbytes
    count = count or (declared.count if declared else None) or servers
    transfer = "collective" if given.collective else workload.transfer
    return Sharing(given.processes or workload.processes, Striping(servers, size, count), partition, transfer)


def _print(predictions: list[ParallelPrediction], sharing: Sharing, store: str) -> None:
    from hyperslab.quantities import digits, interval_text, nbytes_text, seconds_text

    table = Table("layout", "library", "time", "95 % interval", "servers", "cf", box=None)
    for title in ("requests of the slowest process", "bytes", "P2: bytes only"):
        table.add_column(title, justify="right")
    for each in predictions:
        table.add_row(
            str(each.layout),
            each.library,
            seconds_text(each.seconds),
            interval_text(each.low, each.high),
            str(each.servers),
            f"{each.cf:.3g}",
            digits(sum(each.n.values())),
            nbytes_text(int(sum(each.s.values()))),
            seconds_text(each.p2_seconds),
        )
    out = console()
    out.print(table)
    best = predictions[0]
    close = [each for each in predictions[1:] if each.low <= best.high and best.low <= each.high]
    said = f"{sharing.processes} processes, by {sharing.partition}; the time is that of the slowest process."
    if close:
        said += f" Too close to call: {len(close) + 1} of {len(predictions)}."
    out.print(said, soft_wrap=True)
    for reason in dict.fromkeys(
        f"{each.library}, {each.layout}: {r}" for each in predictions for r in each.extrapolating
    ):
        out.print(f"extrapolating: {reason}", soft_wrap=True, markup=False)
    out.print(f"store: {store}", soft_wrap=True, markup=False)
