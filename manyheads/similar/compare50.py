"""Run compare50, CS50's tool for comparing code. It is run as a program, because it needs other packages than nbgrader.

It reads text, ranks pairs, and writes pages that show two attempts side by side and need no network.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import CourseFault

NAME = "compare50"
OWN = Path(".cache", NAME)  # an environment of its own, beside course.yaml
PAGES = ("index.html", "match_*.html")
_UNSAFE = re.compile(r"[^\w .@+-]")
NOWHERE = "http://127.0.0.1:9"  # compare50 asks PyPI for a newer version on every run; this address refuses


def find_compare50(root: Path) -> list[str]:
    """The command: from the PATH, or from the course's OWN folder. Raises CourseFault if it is not installed."""
    program = shutil.which(NAME) or shutil.which(NAME, path=str(root / OWN / "bin"))
    if program is None:
        venv = shlex.quote(str(root / OWN))
        by_hand = f"python3 -m venv {venv} && {venv}/bin/pip install {NAME}"
        raise CourseFault(
            f"{NAME} is not installed. Next: pipx install {NAME} (without pipx: {by_hand}), then the same again"
        )
    # Its script uses the python3 on the PATH, which is the wrong one if compare50 has its own environment.
    python = Path(program).resolve().with_name("python3")
    return [str(python), "-m", NAME] if python.exists() else [program]


def compare(command: list[str], attempts: Mapping[str, str], given: str, stem: str, out: Path, pairs: int) -> bool:
    """Write the pages of the most similar pairs into `out`. Returns whether there are any.

    given: the code that all students were given, which does not count. Raises CourseFault if compare50 fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        students = [f"submitted/{label}" for label in labels(attempts)]
        _lay_out(folder, dict(zip(students, attempts.values(), strict=True)) | {"given": given}, stem)
        options = ["-d", f"given/{stem}.py", "-n", str(pairs), "-o", "pages"]
        # Students come first, because an option with several values would consume them.
        done = subprocess.run(
            [*command, *students, *options], cwd=folder, env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CourseFault(f"{NAME} failed with status {done.returncode} on {stem}. Next: {NAME} --version")
        return _move(folder / "pages", out)


def labels(students: Iterable[str]) -> list[str]:
    """A unique name for each student that is safe in a path, in a pattern, and in the tool's pages, which show it as HTML."""
    made: list[str] = []
    for student in students:
        label = plain = _UNSAFE.sub("_", student).lstrip("-.") or "_"
        number = 1
        while label in made:
            number += 1
            label = f"{plain}~{number}"
        made.append(label)
    return made


def _lay_out(folder: Path, sources: Mapping[str, str], stem: str) -> None:
    for place, text in sources.items():
        (folder / place).mkdir(parents=True)
        (folder / place / f"{stem}.py").write_text(text, encoding="utf-8")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    # A fixed hash seed, as in its own script, makes runs reproducible.
    return {**kept, "PYTHONHASHSEED": "50", "HTTPS_PROXY": NOWHERE, "https_proxy": NOWHERE}


def _move(pages: Path, out: Path) -> bool:
    """Replace the pages of an earlier run by the new ones, and change no other file."""
    out.mkdir(parents=True, exist_ok=True)
    for old in (path for pattern in PAGES for path in out.glob(pattern)):
        old.unlink()
    new = sorted(pages.glob("*.html"))
    for path in new:
        shutil.move(path, out / path.name)
    return bool(new)
