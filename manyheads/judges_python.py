"""The Python that judges attempts: a release writes its version down, and `course check` says where
the student's is newer.

Newer syntax runs on the student's machine and nowhere else. The older version says so for each
attempt; the newer one has to be told.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"  # that reads and runs attempts here
# lists the released files, so that the next release recognises them
MANIFEST = ".github/released.json"
KEY = "python"  # in the manifest: the version, such as "3.11"


def judges_python(root: Path) -> str:
    """Return the version that the class repository in this folder was released with; "" where
    nothing says it.
    """
    try:
        version = json.loads((root / MANIFEST).read_text(encoding="utf-8"))[KEY]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return version if isinstance(version, str) and re.fullmatch(r"3\.\d{1,3}", version) else ""


def said_of_a_newer_python(root: Path) -> str:
    """Return one sentence where this Python is newer than the judge's; else ""."""
    version = judges_python(root)
    if not version or tuple(map(int, version.split("."))) >= sys.version_info[:2]:
        return ""
    return (
        f"note: attempts are judged with Python {version}, and this is {PYTHON}: what is "
        "newer is not valid there"
    )
