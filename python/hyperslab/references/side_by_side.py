"""Work on many numbers side by side: by threads of this process, or by the workers of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from hyperslab.errors import MissingLibrary, UsageError

T = TypeVar("T")
CONNECT_SECONDS = 30


def by_threads(work: Callable[[int], T], numbers: Iterable[int], threads: int) -> Iterator[tuple[int, T]]:
    """Each number with what `work` gives for it, as they come; what it raises is raised, and no more is begun.

    The threads are daemons: Ctrl-C waits neither for them nor for the servers that they wait for.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, T] | BaseException] = SimpleQueue()
    count, is_over = 0, Event()
    for number in numbers:
        waiting.put(number)
        count += 1

    def run() -> None:
        while not is_over.is_set():
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            try:
                done.put((number, work(number)))
            except BaseException as error:
                done.put(error)

    for _ in range(min(threads, count)):
        Thread(target=run, daemon=True, name="hyperslab-index").start()
    try:
        for _ in range(count):
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        is_over.set()


def by_dask(work: Callable[..., T], tasks: Mapping[int, tuple[Any, ...]], scheduler: Any) -> Iterator[tuple[int, T]]:
    """Each number with what `work` gives for its task, as the workers of a scheduler finish them.

    Args:
        work: What a worker calls.
        tasks: By numbers, what it is called with.
        scheduler: A `distributed.Client`, or the address of a scheduler.
    """
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise MissingLibrary("scheduler= needs Dask: pip install 'hyperslab[dask]'") from error
    client: Any = scheduler if isinstance(scheduler, Client) else _connected(Client, scheduler)
    completed: Any = as_completed
    futures = {client.submit(work, *task, pure=False): number for number, task in tasks.items()}
    try:
        for future in completed(list(futures)):
            yield futures[future], future.result()
            future.release()
    finally:
        client.cancel(list(futures))
        if client is not scheduler:
            client.close()


def _connected(client: Any, address: object) -> Any:
    try:
        return client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address}: {error}") from error
