"""What an attempt may import: the same names at every level, whatever else is installed on the machine."""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib.machinery import ModuleSpec
from typing import Any


class _Only:
    """A finder of Python's, which finds these top-level modules and no others."""

    def __init__(self, finder: Any, allowed: Collection[str]) -> None:
        self._finder, self._allowed = finder, allowed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)

    def find_spec(self, name: str, *where: Any) -> ModuleSpec | None:
        """Return where the module is, None where there is none or it is not allowed."""
        # The standard library has one module whose name each system makes.
        allowed = name.partition(".")[0] in self._allowed or name.startswith("_sysconfigdata_")
        spec: ModuleSpec | None = self._finder.find_spec(name, *where) if allowed else None
        return spec


def allow_only(packages: Collection[str]) -> None:
    """Let this process import these packages, the standard library and the worker's own, and nothing else."""
    allowed = frozenset({*sys.stdlib_module_names, *packages, "__main__", __name__.partition(".")[0]})
    for name in [name for name in sys.modules if name.partition(".")[0] not in allowed]:
        del sys.modules[name]
    sys.meta_path[:] = [_Only(finder, allowed) for finder in sys.meta_path]
