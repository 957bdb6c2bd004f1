"""Where the repository stands, and what a grader's process may know of this machine."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = REPOSITORY / ".cache" / "bench"


def environment(folder: Path, programs: Path) -> dict[str, str]:
    """The same for every grader, but for its own `programs`; what is written for later runs stays in `folder`."""
    (folder / "home").mkdir(parents=True, exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
    }
