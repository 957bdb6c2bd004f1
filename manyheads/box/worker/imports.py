"""What an attempt may import: the same names at every level, whatever else is installed on the machine."""

from __future__ import annotations

import sys
from collections.abc import Collection


class _Refusing:
    """A finder that refuses every top-level module but these."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = allowed

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Find nothing. Raises ModuleNotFoundError, as Python does where the module is not installed."""
        if name.partition(".")[0] not in self._allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def allow_only(packages: Collection[str]) -> None:
    """Let this process import these packages, the standard library and the worker's own, and nothing else."""
    allowed = frozenset({*sys.stdlib_module_names, *packages, "__main__", __name__.partition(".")[0]})
    for name in [name for name in sys.modules if name.partition(".")[0] not in allowed]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Refusing(allowed))
