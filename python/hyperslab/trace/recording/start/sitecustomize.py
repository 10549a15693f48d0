"""Python imports this when it starts, since `hyperslab trace` puts its folder first on PYTHONPATH."""

# mypy: ignore-errors

import os
import sys


def _run_own() -> None:
    """Import the sitecustomize that Python would have found without us."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


def _record() -> None:
    folder = os.environ.get("HYPERSLAB_TRACE_FOLDER")
    if not folder or not os.path.isdir(folder):
        return
    from importlib.util import module_from_spec, spec_from_file_location

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = spec_from_file_location(
        "hyperslab_recording", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    sys.modules["hyperslab_recording"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["hyperslab_recording"])
    from hyperslab_recording.hooks import install, preloaded_path
    from hyperslab_recording.log import Log

    log = Log(folder, is_whole_program=True)
    path = preloaded_path()
    log.preloaded = path
    install(log, besides_preloaded=path is not None)


try:
    _record()
except Exception as error:  # a program must run even if it cannot be recorded
    sys.stderr.write(f"hyperslab trace: this process cannot be recorded: {error}\n")
_run_own()
