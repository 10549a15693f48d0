"""Audit any number of files in parallel: in threads of this process, or on the workers of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hyperslab.archive.collections.source_files import threads_for
from hyperslab.archive.far.remote import OPEN_OPTIONS, is_url, shown
from hyperslab.audit.file_audit import FileAudit
from hyperslab.audit.judging import Question, audit_file
from hyperslab.audit.names import file_names
from hyperslab.errors import UsageError
from hyperslab.references.side_by_side import by_dask, by_threads


def audits(
    given: Sequence[str], question: Question, *, threads: int | None = None, scheduler: Any = None
) -> Iterator[FileAudit]:
    """Audit files, and yield what was found in each as it is ready. No more than a few stand in memory.

    Parameters
    ----------
    given : Sequence[str]
        Files, folders, patterns and URLs.
    question : Question
        What is asked of each file.
    threads : int | None
        How many files to audit at a time. The default is one per core, or 32 if some files are remote.
    scheduler : str | distributed.Client | None
        Audit on the workers of a Dask scheduler instead. They must find the files under the same paths, and are sent no
        credentials.

    Raises
    ------
    UsageError
        A pattern matches nothing, or the number of threads is not positive.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"threads is {threads}: use at least 1")
    names = file_names(given, question.options)
    if scheduler is not None:
        kept = {name: value for name, value in question.options.items() if name in OPEN_OPTIONS}
        sent = replace(question, options=kept)
        tasks = ((name, (shown(name) if is_url(name) else name, sent)) for name in names)
        yield from (found for _, found in by_dask(audit_file, tasks, scheduler))
        return
    count = threads or threads_for(any(map(is_url, given)))
    if count == 1:
        yield from (audit_file(name, question) for name in names)
        return
    yield from (found for _, found in by_threads(lambda name: audit_file(name, question), names, count))
