"""Imports the module or file of a target, and explains in one line why an import fails.

A file in a package is imported as a module of that package, so that its relative imports work. Folders of the user's
project are added to the import path: the current folder, `src`, and the folders around a file.
"""

import importlib
import importlib.util
import logging
import re
import sys
import sysconfig
import threading
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from types import ModuleType
from zlib import crc32

import limelight
from limelight.errors import SetupError

PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "langgraph.json", "requirements.txt", ".git")
"""Names of files and folders that mark the root of a project."""
SOURCES = "src"
TARGET_PREFIX = "limelight_target_"
"""Prefix of the names under which files that belong to no package are imported."""
NOT_OWN = {"site-packages", "dist-packages", "node_modules", "__pycache__"}
SEARCH_DEPTH = 3
MAX_FOLDERS = 2000
"""Limits of the search for a package of the user's project that is not on the import path: depth, and number of
folders."""
MAX_NAMED = 10
"""The most missing packages that an error message names."""
REQUIREMENT = re.compile(r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^]]*\])?")
DEFAULT_VARIABLE = "agent"
MAIN_GUARD = 'if __name__ == "__main__":'
SLOW_SECONDS = 10.0
"""After how many seconds of an import the log says that it is not done."""
SLOW_IMPORT = f"%s is still being imported; lines that run an agent or start a server belong under {MAIN_GUARD}"
log = logging.getLogger(__name__)
LIBRARIES = tuple(
    str(Path(folder).resolve())
    for folder in {
        *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(limelight.__file__).parent),
    }
)


def import_module(name: str, target: str) -> ModuleType:
    """Import a module by name, with the current folder and its `src` on the import path. Raises SetupError."""
    prepend_path(Path.cwd())
    append_paths(Path.cwd() / SOURCES)
    return _import(target, name, lambda: importlib.import_module(name), Path.cwd())


def import_file(file: str, target: str) -> ModuleType:
    """Import a Python file; as a module of its package if its folder has an `__init__.py`. Raises SetupError."""
    path = Path(file)
    if not path.is_file():
        raise SetupError(f"target {target!r}: there is no file {path}")
    path = path.resolve()
    project = project_root(path)
    package = package_name(path)
    if package:
        root = path.parents[package.count(".")]
        prepend_path(root)
        append_paths(path.parent, project, project / SOURCES)
        module = _import(target, package, lambda: importlib.import_module(package), project)
        return _check_origin(module, path, target)
    prepend_path(path.parent)  # so that the file can import its neighbours
    append_paths(project, project / SOURCES)
    return _import_alone(path, target, project)


def package_name(path: Path) -> str:
    """Return the dotted module name of a file in a package; "" if its folder is not a package."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) if folder != path.parent and path.stem != "__main__" else ""


def project_root(path: Path) -> Path:
    """Return the root folder of the project that contains a file; the current folder if no PROJECT_FILES are found."""
    for folder in path.parents:
        if any((folder / name).exists() for name in PROJECT_FILES):
            return folder
    return Path.cwd() if path.is_relative_to(Path.cwd()) else path.parent


def prepend_path(folder: Path) -> None:
    """Put a folder first on the import path, unless it is already on it."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def append_paths(*folders: Path) -> None:
    """Append existing folders to the import path, unless they are already on it."""
    sys.path += [str(folder) for folder in folders if folder.is_dir() and str(folder) not in sys.path]


def _check_origin(module: ModuleType, path: Path, target: str) -> ModuleType:
    """Check that a module was imported from this file. Raises SetupError if another module has the same name."""
    origin = getattr(module, "__file__", None)
    if origin is not None and Path(origin).resolve() == path:
        return module
    package = module.__name__.partition(".")[0]
    other = display_path(Path(origin or package))
    raise SetupError(
        f"target {target!r}: the name of its package, {package!r}, is taken by {other}: "
        "rename one of the two, or serve them with two servers"
    )


def _import_alone(path: Path, target: str, project: Path) -> ModuleType:
    """Import a Python file that belongs to no package."""
    # A file may have the name of another module (code.py, test.py), so its module gets a unique name. Agents of one
    # file share the module and its state.
    name = f"{TARGET_PREFIX}{path.stem}_{crc32(str(path).encode()):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SetupError(f"target {target!r}: {path} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader = spec.loader

    def load() -> ModuleType:
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]  # the module is incomplete
            raise
        return module

    return _import(target, name, load, project)


def _import(target: str, name: str, load: Callable[[], ModuleType], project: Path) -> ModuleType:
    """Import a target's module by calling `load`, and turn any error into a SetupError of one line."""
    importlib.invalidate_caches()
    notice = threading.Timer(SLOW_SECONDS, log.warning, [SLOW_IMPORT, target])
    notice.daemon = True
    notice.start()
    try:
        return load()
    except ModuleNotFoundError as error:
        raise SetupError(f"target {target!r}{_missing(error, name, project)}") from error
    except (Exception, SystemExit) as error:
        reason = f"{describe_error(error)}{_main_guard_advice(error, target)}"
        raise SetupError(f"target {target!r} cannot be imported: {reason}") from error
    finally:
        notice.cancel()


def _main_guard_advice(error: BaseException, target: str) -> str:
    """Return advice for a script that has failed after it had made the agent; "" for any other file.

    Many scripts also run their agent, ask on the terminal or start a server. All of that happens during the import.
    """
    variable = (target.rpartition(":")[2] if ":" in target else DEFAULT_VARIABLE).partition(".")[0]
    modules = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code.co_name == "<module>"]
    if not any(variable in frame.f_globals and _is_own(frame.f_code.co_filename) for frame in modules):
        return ""
    return f"; {variable!r} was already made: lines that only run it belong under {MAIN_GUARD}"


def _missing(error: ModuleNotFoundError, target_module: str, project: Path) -> str:
    """Return why a module was not found, and what the user can do, such as install a package."""
    module, place = error.name or "", _error_location(error)
    package = module.partition(".")[0]
    folder = _own_folder(package, project) if package else None
    if not place and (target_module == module or target_module.startswith(module + ".")):
        found = f", but one in {display_path(folder)}" if folder is not None and folder != Path.cwd() else ""
        return f": there is no module {module!r} here{found}; write module:name or path/to/file.py:name"
    if not package:
        return f" cannot be imported: {describe_error(error)}"
    if package != module and _is_found(package):
        return f" cannot be imported: the package {package!r} has no module {module!r}{place}"
    if folder is not None:
        return (
            f" cannot be imported: the package {package!r} is in {display_path(folder)}, which is not on the import "
            f"path{place}: start Limelight in that folder, or add it to `dependencies` in langgraph.json"
        )
    return f" needs the package {package!r}: pip install {_install_arguments(package, project)}{place}"


def describe_error(error: BaseException) -> str:
    """Describe an error of the user's code in one line: its type, its message, file and line number."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({display_path(Path(error.filename))}:{error.lineno})"
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else repr(error.code)}){_error_location(error)}"
    text = " ".join(str(error).split())
    if isinstance(error, ImportError) and "relative import" in text:
        text += ", because its folder has no __init__.py: create one, or import without the dots"
    return f"{type(error).__name__}{': ' if text else ''}{text}{_error_location(error)}"


def _error_location(error: BaseException) -> str:
    """Return the last line of the user's code in an error's traceback, as ` (file.py:3)`; "" if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame.filename)]
    return f" ({display_path(Path(own[-1].filename))}:{own[-1].lineno})" if own else ""


def _is_own(file: str) -> bool:
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    return not (NOT_OWN & set(path.parts)) and not any(path.is_relative_to(folder) for folder in LIBRARIES)


def display_path(path: Path) -> str:
    """Return a path as the user would write it: relative to the current folder if the path is below that."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _is_found(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return package in sys.modules


def _own_folder(name: str, project: Path) -> Path | None:
    """Return the project's folder that contains a package or module of this name; None if there is none."""
    for folder in islice(_folders(project, SEARCH_DEPTH), MAX_FOLDERS):
        if folder.name == name and folder != project and any(folder.glob("*.py")):
            return folder.parent
        if (folder / f"{name}.py").is_file():
            return folder
    return None


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    """Yield a folder and the folders below it, except hidden ones, virtual environments and installed packages."""
    yield folder
    if not depth:
        return
    try:
        children = sorted(folder.iterdir())
    except OSError:
        return
    for child in children:
        skipped = child.name.startswith(".") or child.name in NOT_OWN or (child / "pyvenv.cfg").exists()
        if not skipped and child.is_dir() and not child.is_symlink():
            yield from _folders(child, depth - 1)


def _install_arguments(module: str, project: Path) -> str:
    """Return the arguments for `pip install` that install the package of a missing module.

    If the project declares its package, also those of all other packages that it declares and that are not installed.
    """
    missing = missing_requirements(declared_requirements(project))
    name = _normalized(module)
    exact = [requirement for requirement in missing if _normalized(requirement) == name]
    declared = exact or [requirement for requirement in missing if name in _normalized(requirement)]
    if not declared:
        return module
    return " ".join(dict.fromkeys([*declared, *missing] if len(missing) <= MAX_NAMED else declared))


def declared_requirements(folder: Path) -> list[str]:
    """Return the requirements in a folder's pyproject.toml and requirements.txt; [] if they cannot be read."""
    found: list[str] = []
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        found += [str(line) for line in project.get("dependencies", [])]
    except (OSError, ValueError):
        pass
    try:
        lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    return [line for line in [*found, *lines] if REQUIREMENT.match(line) and "://" not in line]


def missing_requirements(requirements: Iterable[str]) -> list[str]:
    """Return the names of required packages that are not installed, except requirements with conditions."""
    matches = [REQUIREMENT.match(line) for line in requirements if ";" not in line]
    names = [(match["name"], match[0].strip()) for match in matches if match is not None]
    return list(dict.fromkeys(shown for name, shown in names if not _is_installed(name)))


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()
