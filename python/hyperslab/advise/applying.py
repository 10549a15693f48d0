"""What applies an advice: the files for `convert --like`, and one command for all arrays and files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.conversion.advice import AdviceFile, AdvisedArray
from hyperslab.conversion.suffixes import suited

# So many arrays are named in a command; for more, the advice has to be in a file.
MOST_NAMED = 4
SAVED = "advice.json"


@dataclass(frozen=True)
class Application:
    """The files that get one advice, and where it is written for `convert`, if it is."""

    files: list[str]
    advice: AdviceFile
    path: str | None = None
    number: str = ""  # behind the names of what it writes, if it is not the first

    @property
    def rewritten(self) -> dict[str, AdvisedArray]:
        """The arrays that are stored in another way."""
        return {name: one for name, one in self.advice.arrays.items() if not one.keep}

    @property
    def is_named(self) -> bool:
        """Whether a command can name all that is advised, without an advice file."""
        named = self.rewritten.values()
        return len(named) <= MOST_NAMED and all(one.append_axis is None for one in named)

    @property
    def target(self) -> str:
        """A name for what is written: one file, with a suffix that fits its format, or a folder."""
        if len(self.files) > 1:
            return f"better{self.number}"
        return f"better{self.number}{suited(self.files[0], self._format)}"

    @property
    def _format(self) -> str:
        formats = [one.format or "hdf5" for one in self.rewritten.values()]
        return max(formats, key=formats.count, default="hdf5")

    @property
    def command(self) -> str | None:
        """The command that writes all arrays of all files as advised; None if nothing is rewritten."""
        if not self.rewritten:
            return None
        words = ["hyperslab", "convert", *(f"./{file}" if file.startswith("-") else file for file in self.files)]
        words += ["-o", self.target] if len(self.files) > 1 else [self.target]
        if self.path is None and self.is_named:
            for name, one in self.rewritten.items():
                words += _wished(name, one)
        else:
            words += ["--like", self.path or SAVED]
        if self._format == "zarr2" or (len(self.files) > 1 and self._changes_format):
            words += ["--format", self._format]
        return shlex.join(words)

    @property
    def _changes_format(self) -> bool:
        return any(suited(file, self._format) != Path(file).suffix for file in self.files)

    @property
    def is_saved_first(self) -> bool:
        """Whether the command reads an advice file that was not written yet."""
        return bool(self.rewritten) and self.path is None and not self.is_named


def _wished(name: str, one: AdvisedArray) -> list[str]:
    """The options of `convert` that say the same as the advice for one array."""
    at = "" if not name.strip("/") else f"{name.strip('/')}:"
    wanted = one.wanted(is_complete=True)
    words = []
    for key in ("chunks", "shards", "codec"):
        value = wanted.get(key)
        if value is not None:
            words += [f"--{key}", at + (value if isinstance(value, str) else ",".join(map(str, value)))]
    return words


def applications(arrays: Sequence[ArrayAdvice], path: Path | None = None) -> list[Application]:
    """The advice by files: those that agree on all arrays that they share get one, and one command.

    The first is written to `path`, and others beside it; no two of them write to one name.
    """
    by_file: dict[str, dict[str, AdvisedArray]] = {}
    for advice in arrays:
        made = advice.chosen.candidate.advised(advice.verdict, advice.append_axis)
        for file, name in advice.array.members:
            by_file.setdefault(file, {})[name] = made
    groups: list[tuple[list[str], dict[str, AdvisedArray]]] = []
    for file, mine in by_file.items():
        same = (each for each in groups if all(each[1].get(name, one) == one for name, one in mine.items()))
        files, known = next(same, (None, None))
        if files is None or known is None:
            groups.append(([file], dict(mine)))
        else:
            files.append(file)
            known.update(mine)
    made_files = []
    for place, (files, known) in enumerate(groups):
        number = f"-{place + 1}" if place else ""
        where = None if path is None else str(path.with_stem(f"{path.stem}{number}"))
        made_files.append(Application(files, AdviceFile(files[0], known), where, number))
    return made_files


def command_of(advice: ArrayAdvice, option: Option) -> str | None:
    """The command that writes the arrays of one advice in another layout of its ranking."""
    asked = replace(advice, chosen=option, verdict="")
    (made,) = applications([asked])
    return made.command if made.is_named else None
