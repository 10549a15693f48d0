"""Index many archives in parallel: in threads of this process, or on the workers of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from hyperslab.errors import UsageError
from hyperslab.needed import missing

T = TypeVar("T")
CONNECT_SECONDS = 30


def by_threads(work: Callable[[int], T], numbers: Iterable[int], threads: int) -> Iterator[tuple[int, T]]:
    """Yield each number with the result of `work` as it is ready. If a call raises, raise it and start no more calls.

    The threads are daemons, so Ctrl-C does not wait for them or for the servers that they are waiting for.
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
            outcome = done.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        is_over.set()


def by_dask(work: Callable[..., T], tasks: Mapping[int, tuple[Any, ...]], scheduler: Any) -> Iterator[tuple[int, T]]:
    """Yield each number with the result of `work` for its task, as the workers of a scheduler finish them.

    Parameters
    ----------
    work : Callable[..., T]
        The function that a worker calls.
    tasks : Mapping[int, tuple[Any, ...]]
        For each number, the arguments of the call.
    scheduler : str | distributed.Client
        The address of a scheduler, or a client of it.

    Raises
    ------
    MissingLibrary
        Dask is not installed.
    UsageError
        No scheduler answers at the address.
    """
    with client_of(scheduler) as client:
        from distributed import as_completed

        completed: Any = as_completed
        futures = {client.submit(work, *task, pure=False): number for number, task in tasks.items()}
        try:
            for future in completed(list(futures)):
                yield futures[future], future.result()
                future.release()
        finally:
            client.cancel(list(futures))


@contextmanager
def client_of(scheduler: Any) -> Iterator[Any]:
    """A client of a Dask scheduler, which is given by its address or as a client; a given one stays open.

    Raises
    ------
    MissingLibrary
        Dask is not installed.
    UsageError
        No scheduler answers at the address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise missing("distributed", "scheduler=") from error
    if isinstance(scheduler, Client):
        yield scheduler
        return
    client = _connected(Client, scheduler)
    try:
        yield client
    finally:
        client.close()


def _connected(client: Any, address: object) -> Any:
    try:
        return client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address}: {error}; check that it is running") from error
