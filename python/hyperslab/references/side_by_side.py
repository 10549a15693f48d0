"""Work on many files in parallel: in threads of this process, or on the workers of a Dask scheduler.

Keys are taken as they are needed, so that there may be any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from itertools import islice
from queue import SimpleQueue
from threading import Event, Lock, Semaphore, Thread
from typing import Any, TypeVar

from hyperslab.errors import UsageError
from hyperslab.needed import missing

K = TypeVar("K")
T = TypeVar("T")
CONNECT_SECONDS = 30
# Of each thread, so many results may wait to be taken.
MOST_WAITING = 8
# So many tasks are given to a scheduler at a time.
MOST_SUBMITTED = 1000


def by_threads(work: Callable[[K], T], keys: Iterable[K], threads: int) -> Iterator[tuple[K, T]]:
    """Yield each key with the result of `work` as it is ready. If a call raises, raise it and start no more calls.

    The threads are daemons, so Ctrl-C does not wait for them or for the servers that they are waiting for.
    """
    count = min(threads, len(keys)) if isinstance(keys, Sized) else threads
    waiting, turn, is_over = iter(keys), Lock(), Event()
    done: SimpleQueue[tuple[K, T] | BaseException | None] = SimpleQueue()
    room = Semaphore(count * MOST_WAITING)

    def run() -> None:
        while True:
            room.acquire()
            if is_over.is_set():
                return
            try:
                with turn:
                    key = next(waiting)
                done.put((key, work(key)))
            except StopIteration:
                done.put(None)
                return
            except BaseException as error:
                done.put(error)
                return

    for _ in range(count):
        Thread(target=run, daemon=True, name="hyperslab-files").start()
    running = count
    try:
        while running:
            outcome = done.get()
            if outcome is None:
                running -= 1
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                room.release()
                yield outcome
    finally:
        is_over.set()
        room.release(max(count, 1))  # those that wait for room see that it is over


def by_dask(
    work: Callable[..., T], tasks: Iterable[tuple[K, tuple[Any, ...]]], scheduler: Any
) -> Iterator[tuple[K, T]]:
    """Yield each key with the result of `work` for its task, as the workers of a scheduler finish them.

    Parameters
    ----------
    work : Callable[..., T]
        The function that a worker calls.
    tasks : Iterable[tuple[K, tuple[Any, ...]]]
        Each key with the arguments of the call.
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

        waiting = iter(tasks)
        futures: dict[Any, K] = {}

        def submitted(most: int) -> list[Any]:
            made = {client.submit(work, *task, pure=False): key for key, task in islice(waiting, most)}
            futures.update(made)
            return list(made)

        completed: Any = as_completed
        try:
            finished = completed(submitted(MOST_SUBMITTED))
            for future in finished:
                yield futures.pop(future), future.result()
                future.release()
                finished.update(submitted(1))
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
