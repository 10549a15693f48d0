"""The remote speed table: reading and indexing far files, compared with every named peer in turn.

    python benchmarks/remote_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`w8`, `index`, `small`, `urls`). nginx serves the files. Our delaying proxy, another process,
delays every byte by 20 or 25 ms each way, and every new connection by one round trip. Each timed run uses a new port,
so that no connection is open. Besides the seconds, the table has each side's requests and bytes from nginx's log.
`--quick` checks within minutes that everything works, and saves nothing.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import command
import comparison
import far_files
import far_rows
import peers
import url_rows
from comparison import OURS, Row, Side
from files import Files

import hyperslab
from hyperslab.lab import serving

RESULTS = Path(__file__).parent / "results" / "remote_speed.json"
MEGABYTES = 256
MOST_ROUNDS, MOST_INDEX_NBYTES, MOST_AMPLIFICATION = 8, 10_000_000, 1.1


def groups(files: Files, network: far_rows.Network, quick: bool) -> dict[str, Callable[[], Iterator[Row]]]:
    """The groups of rows. Each group is created when you ask for it."""
    return {
        "w8": lambda: far_rows.hyperslab_of_64_mb(files, network, quick),
        "index": lambda: far_rows.indices(far_files.MAKERS, files, network, quick),
        "small": lambda: far_rows.small_chunks(files, network, quick),
        "urls": lambda: url_rows.opened(files, network, quick),
    }


def measured(row: Row, server: serving.Nginx, quick: bool) -> dict[str, Any]:
    """Measure one row. Then run each side once more without timing it, to count its requests to the server."""
    made: dict[str, Side] = {}

    def remembered(name: str, make: Callable[[], Side]) -> Callable[[], Side]:
        def ready() -> Side:
            made[name] = make()
            return made[name]

        return ready

    sides = {name: remembered(name, make) for name, make in row.sides.items()}
    record = comparison.measure(replace(row, sides=sides), quick)
    network = {name: asked(made[name], server) for name in row.sides if name in record["seconds"]}
    if row.key == "w8-nothing":
        needed = far_rows.needed_nbytes(row.files[0], slice(0, 16) if quick else slice(40, 56))
        network[OURS]["needed_nbytes"] = needed
    return record | {"network": network, "limits": limits(network[OURS], row.key)}


def asked(side: Side, server: serving.Nginx) -> dict[str, Any]:
    """Requests and bytes of one run in the server's log, and our dependent rounds."""
    seen, before = len(server.requests()), hyperslab.stats()["round_count"]
    side.run()
    rounds = hyperslab.stats()["round_count"] - before
    requests = server.requests()[seen:]
    said = {"request_count": len(requests), "nbytes": sum(sent for _, sent in requests)}
    return said | ({"round_count": rounds} if rounds else {})


def limits(ours: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The absolute targets of counts."""
    found = []
    if "needed_nbytes" in ours:
        found.append(("bytes / needed", ours["nbytes"] / ours["needed_nbytes"], MOST_AMPLIFICATION))
    if key.startswith("index-"):
        found.append(("rounds", ours["round_count"], MOST_ROUNDS))
        found.append(("bytes", ours["nbytes"], MOST_INDEX_NBYTES))
    return [
        {"what": what, "value": value, "target": most, "verdict": "met" if value <= most else "missed"}
        for what, value, most in found
    ]


def main() -> None:
    """Measure, print the lines of each row, and save the figures after each row."""
    said = command.arguments(__doc__)
    command.limit_processors()
    # fsspec leaves its sessions open, and asyncio complains at length
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hyperslab-")))
        where = stack.enter_context(command.directory(said))
        server = stack.enter_context(serving.nginx(scratch / "nginx", where))
        network = far_rows.Network(server, stack)
        files = Files(where, command.QUICK_MEGABYTES if said.quick else MEGABYTES)
        made = {name: each(rows, server, said.quick) for name, rows in groups(files, network, said.quick).items()}
        command.run(said, made, RESULTS, peers.versions(peers.FAR_PACKAGES), where, megabytes=MEGABYTES)


def each(
    rows: Callable[[], Iterator[Row]], server: serving.Nginx, quick: bool
) -> Callable[[], Iterator[dict[str, Any]]]:
    """A group of rows. Each row is measured when you ask for it."""
    return lambda: (measured(row, server, quick) for row in rows())


if __name__ == "__main__":
    main()
