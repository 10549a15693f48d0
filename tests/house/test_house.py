"""The limits that CONTRIBUTING.md promises, kept by a test rather than by reviewers."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "hyperslab"
# Upper layers first; a module may import its own layer and those below it, never one above. A dotted name is one room,
# or one module, of a package whose other parts are in another layer.
# `model` is above `bench`: workloads are made of its patterns. Both measure by `lab`, which knows neither.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["running"],
    ["report"],  # draws what `advise` and all below it found; none of them draws
    ["audit"],  # many files, judged by what `advise` knows of one
    ["advise"],
    ["parallel"],  # counts by `model`, per process
    ["model"],
    ["trace"],  # what a program did; `model` prices it
    ["bench"],
    ["lab"],
    ["formats"],
    ["versions.compat"],
    # What is kept, or comes from another file, is written as any version.
    ["versions", "versions.file", "versions.rewrite.repairing", "versions.transfer"],
    ["versions.branching", "versions.rewrite"],
    ["versions.inspect"],  # an export is a conversion of a version
    ["conversion"],  # archives written again
    ["versions.commit", "versions.stage"],
    ["references"],
    ["h5"],  # h5py's interface
    ["archive.opening", "archive.xarray_engine"],  # `open` can open a version
    ["versions.layout"],  # a version is read as an archive
    ["archive"],
    ["storage"],  # how arrays are laid out
    ["journal"],  # before an archive is read, a commit that was cut short is finished
    [
        "arrow",
        "declared",
        "libhdf5",
        "meant",
        "needed",
        "panics",
        "preloading",
        "progress",
        "quantities",
        "regular_files",
        "replacing",
        "scratch",
    ],
    ["errors", "memory", "cached", "chunk_grid", "timers", "_core"],
]
# A method whose answer is made above, by what its object was given; only the type of the answer is imported. (The names
# of `archive` itself are found when you ask for them.)
ANSWERED_FROM_ABOVE = {("versions.stage.staged_group", "versions.inspect.diff")}
MOST_FILE_LINES, MOST_FUNCTION_LINES, MOST_BYTES = 500, 70, 1_000_000
FORBIDDEN_MODULES = {"utils", "helpers", "common", "base", "manager", "misc"}


def committed() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


FILES = committed()
PYTHON = [path for path in FILES if path.suffix == ".py"]
RUST = [path for path in FILES if path.suffix == ".rs"]
OURS = [path for path in PYTHON if path.is_relative_to(PACKAGE)]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def layer_of(module: str) -> int | None:
    """The layer of a module, by the longest of the names there that it begins with."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        for depth, names in enumerate(LAYERS):
            if name in names:
                return depth
    return None


def module_of(path: Path) -> str:
    """A module's name within hyperslab; that of a package for its `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in OURS}


@cache
def imported_modules(path: Path) -> set[str]:
    """Modules of hyperslab that a file imports, wherever in the file, also for types only; "" is the package itself."""
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    inner = {name.partition(".")[2] for name in names if name.split(".")[0] == "hyperslab"}
    return {name if name in MODULES else name.rpartition(".")[0] for name in inner} & set(MODULES)


def test_imports_go_only_downward() -> None:
    assert [wrong for path in OURS for wrong in imported_from_above(path)] == []


def imported_from_above(path: Path) -> Iterator[str]:
    own = module_of(path)
    depth = layer_of(own)
    if depth is None:
        if own:
            yield f"{relative(path)} is in no layer: add it to LAYERS and ARCHITECTURE.md"
        return
    for module in imported_modules(path):
        below = layer_of(module)
        is_promised = own == "archive" or module == "archive" or (own, module) in ANSWERED_FROM_ABOVE
        if below is not None and below < depth and not is_promised:
            yield f"{relative(path)} imports {module}, which is above it"


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports = {name: imported_modules(path) for name, path in MODULES.items()}
    assert circles(imports) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "d"}, "e": set()}) == [["a", "b", "c"], ["d"]]


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules of which each imports, by way of others, every other one."""
    reached: dict[str, set[str]] = {}
    for start in imports:
        seen, waiting = set(), [start]
        while waiting:
            for name in imports[waiting.pop()] - seen:
                seen.add(name)
                waiting.append(name)
        reached[start] = seen
    found = {tuple(sorted(n for n in reached[name] if name in reached[n])) for name in imports if name in reached[name]}
    return [list(circle) for circle in sorted(found)]


def test_the_pure_crates_do_no_io_and_know_no_python() -> None:
    for path in RUST:
        if relative(path).startswith(("crates/hyperslab-core/src", "crates/hyperslab-model/src")):
            text = path.read_text()
            for forbidden in ("std::fs", "std::io", "std::net", "std::time", "pyo3", "numpy"):
                assert f"use {forbidden}" not in text, f"{relative(path)} uses {forbidden}"


def test_files_are_short() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in PYTHON + RUST}
    assert {path: length for path, length in lengths.items() if length > MOST_FILE_LINES} == {}


def test_functions_are_short() -> None:
    assert [wrong for path in PYTHON for wrong in long_functions(path)] == []


def long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            said = node.body[0] if ast.get_docstring(node) else None  # which may be as long as it has to be
            length -= (said.end_lineno or said.lineno) - said.lineno + 1 if said is not None else 0
            if length > MOST_FUNCTION_LINES:
                yield f"{relative(path)}:{node.lineno} {node.name} has {length} lines"


def test_rust_functions_are_short() -> None:
    for path in RUST:
        for name, line, length in rust_functions(path.read_text()):
            assert length <= MOST_FUNCTION_LINES, f"{relative(path)}:{line} {name} has {length} lines"


def test_rust_functions_are_measured_by_their_braces() -> None:
    text = """
    fn declared(a: u8);
    unsafe fn wraps(
        a: u8,
    ) -> u8 {
        let text = "}
        }"; // }
        let character = '}'; /* }
        } */
        a
    }
    fn short() { r#"}"#; }
"""
    assert list(rust_functions(text)) == [("declared", 2, 1), ("wraps", 3, 9), ("short", 12, 1)]


# What may hold braces that are none: comments, strings, characters. A lifetime is no character.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']+|\\\'|[^\'\\])\'', re.DOTALL)


def rust_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first line and length of each function, from its first word to the brace that closes it."""
    code = NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for begun in re.finditer(r"^[ \w()]*\bfn (\w+)", code, re.MULTILINE):
        depth, last = 0, begun.end()
        for mark in re.finditer(r"[{};]", code[begun.end() :]):
            last = begun.end() + mark.end()
            depth += {"{": 1, "}": -1, ";": 0}[mark[0]]
            if depth == 0:  # also a declaration without a body
                break
        yield begun[1], code.count("\n", 0, begun.start()) + 1, code.count("\n", begun.start(), last) + 1


def test_ceilings_have_one_home() -> None:
    for path in OURS:
        if path.name != "chunk_grid.py":
            assert not re.search(r"-\(-.* // ", path.read_text()), f"{relative(path)}: use chunk_grid.ceil_div"


def test_no_module_is_a_grab_bag() -> None:
    for path in PYTHON + RUST:
        assert path.stem not in FORBIDDEN_MODULES, relative(path)


def forbidden_words() -> set[str]:
    rows = [line for line in (ROOT / "GLOSSARY.md").read_text().splitlines() if line.startswith("| ")][1:]
    return {word.strip() for row in rows for word in row.rstrip("|").split("|")[-1].split(",") if word.strip()}


# What xarray calls the parts of an engine, and h5py making an array.
NAMES_OF_OTHERS = {"open_dataset", "open_dataset_parameters", "create_dataset"}


def test_names_follow_the_glossary() -> None:
    forbidden = forbidden_words()
    assert "dataset" in forbidden
    judged = [path for path in OURS if not {"formats", "compat", "h5"} & set(path.parts)]
    assert [wrong for path in judged for wrong in names_against(forbidden, path)] == []


def names_against(forbidden: set[str], path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        else:
            continue
        if name in NAMES_OF_OTHERS:
            continue
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        for bad in forbidden:
            if bad in (words if "_" in bad else words.split("_")):
                yield f"{relative(path)}: {name} (the glossary says what to write for {bad})"


def test_no_committed_file_is_large() -> None:
    for path in FILES:
        assert path.stat().st_size <= MOST_BYTES, relative(path)


def test_no_machine_path_or_registry_host_is_committed() -> None:
    hosts = ["pypi" + ".org", "files.pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"]
    paths = ["/root" + "/", "/home" + "/", "/work" + "/main"]
    for path in FILES:
        if path.name == "Cargo.lock" or path.suffix in {".png", ".svg", ".parquet"}:
            continue
        text = path.read_text(errors="replace")
        for bad in hosts + paths:
            assert bad not in text, f"{relative(path)} holds {bad}"


def test_bytes_are_put_into_words_in_one_place() -> None:
    """Counted in decimal units, set in binary ones: `quantities` says both, and `running` prints them too."""
    by_hand = re.compile(r"\{[^{}]*(?:/ ?(?:1e6|1e9|GB|MIB|\(1 << \d0\)|2\*\*\d0))[^{}]*\} ?[kKMGT]i?B\b(?!/s)")
    allowed = {"quantities.py", "environment.py", "log.py", "paper_experiments.py"}  # the last three: committed results
    wrong = [relative(path) for path in OURS if path.name not in allowed and by_hand.search(path.read_text())]
    assert wrong == []


def test_relative_links_lead_somewhere() -> None:
    for path in FILES:
        if path.suffix == ".md":
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
                if "://" not in target:
                    assert (path.parent / target).exists(), f"{relative(path)} links to {target}"


def test_every_public_name_has_a_docstring() -> None:
    for path in OURS:
        tree = parsed(path)
        assert ast.get_docstring(tree) or not path.read_text().strip(), relative(path)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{relative(path)}: {node.name}"


def test_python_dependencies_are_locked_by_names_and_versions_only() -> None:
    """And by the Python that a version is for, where there is no one version for all."""
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+( ; python_version (<|>=) \"3\.\d+\")?", line), line


def test_importing_hyperslab_is_light() -> None:
    """The core must not pull in NumPy-scale libraries: counted in modules, since a timing never fails a test."""
    code = "import sys, hyperslab; print(*sys.modules)"
    import sys

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for heavy in ("pandas", "h5py", "zarr", "matplotlib", "plotly", "pyarrow", "scipy", "dask"):
        assert heavy not in loaded


# Who reads a clock other than by `Timers`, and what for. Published methods keep their own timers: decision 3.
READS = re.compile(
    r"\btime\.(?:time|monotonic|perf_counter|process_time|thread_time)(?:_ns)?\b|\.now\(|\bfrom time import"
)
GIVES_UP, TELLS_WHEN, TELLS_HOW_LONG = "waits or gives up", "tells when", "tells a person how long"
CLOCKS = {
    "bench.budgets": GIVES_UP,
    "bench.execution": GIVES_UP,  # processes that start together
    "bench.fair": TELLS_WHEN,
    "bench.published.common_io": "a published method",
    "bench.published.compound": "a published method",
    "bench.session": TELLS_WHEN,
    "bench.trial": GIVES_UP,
    "cli.lab": GIVES_UP,
    "cli.progress": TELLS_HOW_LONG,
    "conversion.converting": TELLS_HOW_LONG,
    "journal.locks": GIVES_UP,
    "lab.other_load": GIVES_UP,
    "lab.rounds": GIVES_UP,
    "lab.serving": GIVES_UP,
    "model.calibrating": TELLS_WHEN,
    "model.evaluation_session": TELLS_HOW_LONG,
    "model.generated.session": TELLS_HOW_LONG,
    "parallel.striped_store.client": GIVES_UP,  # processes that start together
    "parallel.striped_store.server": TELLS_WHEN,
    "parallel.striped_store.store": GIVES_UP,
    "parallel.striped_store.tree": TELLS_WHEN,
    "parallel.striped_store.wire": GIVES_UP,
    "progress": TELLS_HOW_LONG,
    "running.command": TELLS_WHEN,  # in the name of a file
    "timers": "`Timers`",
    "trace.recording.log": "a trace: when each access was",
    "versions.inspect.witness": GIVES_UP,
    "versions.layout.names": TELLS_WHEN,
}


def test_timers_is_the_only_clock_of_what_is_measured() -> None:
    assert {module for module, path in MODULES.items() if READS.search(path.read_text())} == set(CLOCKS)
