"""Trusted code as namespaces: the reference of an exercise, imported in the judge's process."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ..errors import CourseFault


class BrokenReference(CourseFault):
    """A reference cannot be imported. The text names the file and the error."""


@lru_cache(maxsize=256)
def namespace_of(path: Path) -> Mapping[str, object]:
    """The names that a trusted source file defines. Its `__main__` part does not run."""
    module = types.ModuleType(f"trusted_{path.parent.name}_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look for their module
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise BrokenReference(f"{path}: {type(error).__name__}: {error}. Next: python {path}") from error
    return vars(module)
