"""`course check` beside `import torch`, and `--watch` from a save to its result. Run: python -m bench.checks

Prints medians and ratios of pairs that were run in turn; the watch's figures are seconds from writing a file to the
last line of its report.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAIRS, SAVES = 10, 20
NAME = "reshape_dance"
LAST_LINE = re.compile(rb"Ctrl-C\s+ends\s+this")


def main() -> None:
    """Measure, print."""
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy(Path(folder))
        ratios = []
        for _ in range(PAIRS):
            alone = _seconds([sys.executable, "-c", "import torch"], copy)
            check = _seconds([sys.executable, "-m", "manyheads", "check", NAME, "--fresh"], copy)
            ratios.append(check / alone)
        low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
        print(f"course check {NAME}: {middle:.2f} times `python -c 'import torch'` ({low:.2f} to {high:.2f})")
        waits = sorted(_watch(copy))
        middle, worst = statistics.median(waits), waits[-1]
        print(f"course check --watch, from save to report: {middle * 1000:.0f} ms (at most {worst * 1000:.0f})")


def _copy(folder: Path) -> Path:
    """A student's folder in which exercise 4 is done."""
    shutil.copy(ROOT / "course.yaml", folder)
    shutil.copytree(ROOT / "exercises", folder / "exercises")
    (script,) = (ROOT / "solutions").glob(f"*/*_{NAME}.py")
    shutil.copy(script, folder / "exercises" / script.parent.name)
    return folder


def _seconds(command: list[str], folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=_environment())
    return time.perf_counter() - started


def _watch(folder: Path) -> list[float]:
    """Seconds for each save."""
    (script,) = (folder / "exercises").glob(f"*/*_{NAME}.py")
    source = script.read_text(encoding="utf-8")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-m", "manyheads", "check", "--watch"], _environment())
    _read_report(terminal)
    time.sleep(1.0)  # until it watches
    waits = []
    for count in range(SAVES):
        started = time.perf_counter()
        script.write_text(f"{source}\n# save {count}\n", encoding="utf-8")
        _read_report(terminal)
        waits.append(time.perf_counter() - started)
        time.sleep(0.2)
    os.write(terminal, b"\x03")
    os.waitpid(child, 0)
    return waits


def _read_report(terminal: int) -> None:
    seen = b""
    while not LAST_LINE.search(seen):
        seen += os.read(terminal, 65536)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}


if __name__ == "__main__":
    main()
