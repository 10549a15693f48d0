"""What a shell offers after TAB: commands, options and their values, arrays of files, studies, formats and versions.

The scripts of `hyperslab completion` put the line up to the cursor in the environment and read one offer a line.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

LINE, BREAKS = "_HYPERSLAB_COMPLETE", "_HYPERSLAB_BREAKS"
MOST_OFFERS = 2000

SCRIPTS = {
    # Bash cuts words at the characters of COMP_WORDBREAKS and replaces only what follows the last one.
    "bash": """\
_hyperslab() {
    mapfile -t COMPREPLY < <(
        _HYPERSLAB_COMPLETE="${COMP_LINE:0:COMP_POINT}" _HYPERSLAB_BREAKS="$COMP_WORDBREAKS" "$1" 2>/dev/null)
}
complete -o default -F _hyperslab hyperslab
""",
    "zsh": """\
#compdef hyperslab
_hyperslab() {
    local -a offers values shown
    offers=("${(@f)$(_HYPERSLAB_COMPLETE="${(j: :)words[1,CURRENT]}" "${words[1]}" 2>/dev/null)}")
    if [[ -z "${offers[*]}" ]]; then
        _files
        return
    fi
    values=("${(@)offers%%$'\\t'*}")
    shown=("${(@)offers//$'\\t'/  }")
    compadd -l -d shown -a values
}
if [[ "${funcstack[1]}" == _hyperslab ]]; then
    _hyperslab "$@"
else
    compdef _hyperslab hyperslab
fi
""",
    "fish": """\
complete --command hyperslab --arguments \
'(env _HYPERSLAB_COMPLETE=(commandline --cut-at-cursor --current-process | string collect) hyperslab 2>/dev/null)'
""",
}

Offer = tuple[str, str]
"""A word, and a few words about it."""


def answer(line: str) -> str:
    """The offers for a command line that is cut at the cursor, one a line; Bash gets them as it has to insert them."""
    *words, incomplete = _split(line)
    printable_offers = [(value, said) for value, said in offers(words[1:], incomplete) if value.isprintable()]
    breaks = os.environ.get(BREAKS)
    if breaks is not None:
        return "".join(f"{_for_bash(value, incomplete, breaks)}\n" for value, _ in printable_offers)
    return "".join(f"{value}\t{' '.join(said.split())}\n" for value, said in printable_offers)


def _split(line: str) -> list[str]:
    """The words of a line, the last of which is not complete; a quote may be open."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    try:
        words += list(iter(lexer.get_token, None))
    except ValueError:
        return [*_split_at_spaces(line), lexer.token or ""]
    return [*words, ""] if not words or line[-1:].isspace() else words


def _split_at_spaces(line: str) -> list[str]:
    """The words before an open quote."""
    before = line[: max(line.rfind("'"), line.rfind('"'))]
    return before.split()


def _for_bash(value: str, incomplete: str, breaks: str) -> str:
    """The part of an offer that follows the last character at which Bash cuts words, with escapes."""
    cut = max((incomplete.rfind(one) for one in breaks if one in ":="), default=-1) + 1
    return re.sub(r"([^\w/.:=@%+,-])", r"\\\1", value[cut:])


def offers(words: list[str], incomplete: str) -> list[Offer]:
    """What may take the place of the incomplete word; nothing where a file is asked for, which shells know best."""
    from hyperslab.cli.commands import ENTRIES

    if not words:
        return _beginning([(name, entry.line) for name, entry in ENTRIES.items()], incomplete)
    if words[0] not in ENTRIES:
        return []
    command, path, rest = ENTRIES[words[0]].load(words[0]), words[0], words[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command, path, rest = command.commands[rest[0]], f"{path} {rest[0]}", rest[1:]
    listed = {name: one for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    if listed and not rest and not incomplete.startswith("-"):
        return _beginning([(name, (one.help or "").partition("\n")[0]) for name, one in listed.items()], incomplete)
    return _of_command(command, path, rest, incomplete)


def _of_command(command: Any, path: str, words: list[str], incomplete: str) -> list[Offer]:
    options = {
        name: one
        for one in command.params
        if one.param_type_name == "option" and not one.hidden
        for name in (*one.opts, *one.secondary_opts)
    }
    awaiting, given = _consumed(options, words)
    name, equals, value = incomplete.partition("=")
    if equals and name in options:
        return [(f"{name}={choice}", said) for choice, said in _values(options[name], path, given, value)]
    if awaiting is not None:
        return _values(awaiting, path, given, incomplete)
    if incomplete.startswith("-"):
        return _beginning([(name, one.help or "") for name, one in options.items()], incomplete)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if len(given) < len(arguments):
        return _values(arguments[len(given)], path, given, incomplete)
    return _values(arguments[-1], path, given, incomplete) if arguments and arguments[-1].nargs == -1 else []


def _consumed(options: dict[str, Any], words: list[str]) -> tuple[Any, list[str]]:
    """The option that the next word is the value of, and the arguments so far."""
    awaiting, given = None, list[str]()
    for word in words:
        if awaiting is not None:
            awaiting = None
        elif word in options:
            awaiting = None if options[word].is_flag else options[word]
        elif not word.startswith("-"):
            given.append(word)
    return awaiting, given


def _values(parameter: Any, path: str, given: list[str], incomplete: str) -> list[Offer]:
    described = getattr(parameter, "type_descriptor", None) or getattr(parameter, "type", None)
    choices = getattr(described, "choices", None)
    if choices:
        return _beginning([(str(one), "") for one in choices], incomplete)
    finding = VALUES.get((path, parameter.name))
    if finding is None:
        return []
    try:
        return _beginning(islice(finding(given, incomplete), MOST_OFFERS), incomplete)
    except Exception:  # a file that cannot be read has nothing to offer, and a message would spoil the line
        return []


def _beginning(all_offers: Iterable[Offer], incomplete: str) -> list[Offer]:
    return [(value, said) for value, said in all_offers if value.startswith(incomplete)]


def _arrays_in(given: list[str], incomplete: str) -> Iterator[Offer]:
    """The arrays of the file that was named before."""
    return _arrays(given[0], incomplete)


def _arrays_after(_: list[str], incomplete: str) -> Iterator[Offer]:
    """FILE:ARRAY for the file that stands before the colon."""
    for cut in [place for place, one in enumerate(incomplete) if one == ":"]:
        file = incomplete[:cut]
        if os.path.exists(file):  # noqa: PTH110
            for name, said in _arrays(file, incomplete[cut + 1 :]):
                yield f"{file}:{name}", said


def _arrays(file: str, incomplete: str) -> Iterator[Offer]:
    """The arrays of a local file: a server would let you wait."""
    if "://" in file:
        return
    import hyperslab
    from hyperslab.cli.archives import arrays_of

    with hyperslab.open(file) as root:
        for array in arrays_of(root):
            shape = " × ".join(map(str, array.shape))
            yield array.name if incomplete.startswith("/") else array.name.lstrip("/"), shape


def _studies(_: list[str], __: str) -> Iterator[Offer]:
    from hyperslab.bench.session import choose

    cases = choose(["*"])
    yield from ((case.name, case.title) for case in cases)
    yield from ((family, "all studies of this family") for family in sorted({case.family for case in cases}))


def _formats(_: list[str], __: str) -> Iterator[Offer]:
    from hyperslab.formats import FORMATS

    yield from ((name, "") for name in FORMATS)


def _versions(given: list[str], _: str) -> Iterator[Offer]:
    import hyperslab

    with hyperslab.VersionedFile(given[0]) as file:
        yield from ((name, "") for name in file.versions)


Finding = Callable[[list[str], str], Iterator[Offer]]
# What may be written for a parameter, by the command and the parameter's name in its function.
VALUES: dict[tuple[str, str], Finding] = {
    ("read", "file"): _arrays_after,
    ("read", "array"): _arrays_in,
    ("advise", "targets"): _arrays_after,
    ("predict", "target"): _arrays_after,
    ("predict", "file"): _arrays_after,
    ("bench", "data"): _arrays_after,
    ("bench", "study"): _studies,
    ("studies", "name"): _studies,
    ("formats", "name"): _formats,
    ("versions delete", "version"): _versions,
    ("versions diff", "before"): _versions,
    ("versions diff", "after"): _versions,
    ("versions export", "version"): _versions,
    ("versions show", "version"): _versions,
}
