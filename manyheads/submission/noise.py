"""Names that systems, editors and nbgrader leave beside what is handed in. They mean nothing, and nothing is said of them."""

from __future__ import annotations

from fnmatch import fnmatchcase

_NOISE = (
    ".DS_Store", "._*", "__MACOSX", "desktop.ini", "Thumbs.db", ".*.swp",
    "__pycache__", "*.pyc", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache", ".ruff_cache",
    ".venv", "site-packages", "dist-packages", "node_modules", ".tox", ".nox",  # a virtual environment, of whatever name
    ".course",  # what our own commands remember
    ".git", ".gitignore", ".gitattributes", ".gitkeep", ".vscode", ".idea",
    ".collected.json",  # what `course collect` remembers
    "timestamp.txt", "submission_secret.txt",  # nbgrader's
)  # fmt: skip


def is_noise(name: str) -> bool:
    """Whether a file or folder of this name is no part of what was handed in."""
    return any(fnmatchcase(name, pattern) for pattern in _NOISE)
