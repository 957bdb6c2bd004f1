"""Import trusted code (references and mutants) in the judge's process, as namespaces."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from shlex import quote

from ..errors import CourseFault


class BrokenReference(CourseFault):
    """A reference cannot be imported. The text names the file and the error."""


@lru_cache(maxsize=256)
def namespace_of(path: Path) -> Mapping[str, object]:
    """The names that a trusted source file defines. Its `__main__` part does not run.

    The file may import its neighbours: `from ._shared import softmax`. Raises BrokenReference.
    """
    return namespace_of_source(path.read_text(encoding="utf-8"), path)


def namespace_of_source(source: str, path: Path) -> Mapping[str, object]:
    """The names that this source defines if it were the file at `path`. Raises BrokenReference."""
    module = types.ModuleType(f"{_package_of(path.parent)}.{path.stem}")
    module.__file__ = str(path)
    module.__package__ = module.__name__.rpartition(".")[0]
    sys.modules[module.__name__] = module  # dataclasses look up their module here
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise BrokenReference(f"{path}: {type(error).__name__}: {error}. Next: python {quote(str(path))}") from error
    return vars(module)


def _package_of(folder: Path) -> str:
    """The name of a package whose modules are the files of this folder. Each course has its own packages."""
    name = f"trusted_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name
