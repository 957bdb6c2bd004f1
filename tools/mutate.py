"""Measure the tests of twelve modules: change a line, and see whether a test fails.

    python -m tools.mutate list [MODULE…]             # the mutants that `run` would test
    python -m tools.mutate run [MODULE or ID…]        # test them, and print those that survive
    python -m tools.mutate show ID                    # what one mutant changes, as a diff
    options of all three: --seed N, --number N (mutants per module), --jobs N

A mutant is the module with one small change. It is killed if a test fails with it, or needs far
longer than without it. A mutant that survives shows a line whose effect no test looks at, unless
nobody could notice the change: mutate.toml lists those with the reason, by their text. It also has
the file of each module, and its tests.

Steps: find all changes of a module (`mutants_of`), choose some of each kind from many functions
(`choose`), copy the files that git knows to a temporary folder, write one mutant there at a time,
and run the module's tests there in a process forked from this one, so that slow packages are
imported once. The working tree is only read.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tools.mutants import Mutant, choose, mutants_of

ROOT = Path(__file__).parents[1]
TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PRELOADED = ("pytest", "torch", "numpy", "pydantic", "rich.console", "typer", "hypothesis")
MOST_SURVIVORS = 0.08  # of all mutants; with more, `run` fails
TIMEOUT_FACTOR, TIMEOUT_SECONDS = 5, 20  # beyond the time that the tests need without a mutant
WRONG_IMPORT = 99  # the exit code of a test run that imported another copy


def copy_tree(root: Path, target: Path) -> None:
    """Copy the files that git knows or does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if os.path.lexists(root / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name, follow_symlinks=False)


def run_tests(folder: Path, module: str, timeout: float) -> int:
    """Return the exit code of pytest in a copy of the tree, or 1 if it does not end in time."""
    path, tests = TABLE["modules"][module]["file"], TABLE["modules"][module]["tests"]
    package = path.split("/")[0].removesuffix(".py")
    pid = os.fork()
    if pid == 0:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        os.chdir(folder)
        os.environ |= {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
        sys.path = [str(folder), *(p for p in sys.path if p not in ("", str(ROOT)))]
        pytest = importlib.import_module("pytest")
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
        file = getattr(sys.modules.get(package), "__file__", None) or str(folder)
        os._exit(code if Path(file).is_relative_to(folder) else WRONG_IMPORT)
    end = time.monotonic() + timeout
    status = (0, 0)
    try:
        while status == (0, 0) and time.monotonic() < end:
            time.sleep(0.02)
            status = os.waitpid(pid, os.WNOHANG)
    finally:  # also if this run is interrupted
        if status == (0, 0):
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return 1 if status == (0, 0) else os.waitstatus_to_exitcode(status[1])


def _start_worker(root: Path, temporary: str) -> None:
    """Make this process's own copy of the tree, and import what takes long."""
    for name in PRELOADED:
        importlib.import_module(name)
    copy_tree(root, Path(temporary, str(os.getpid())))


def test_mutant(mutant: Mutant | str, temporary: str, timeout: float) -> tuple[int, float]:
    """Return the exit code of the tests, without a mutant if it is a module's name, and seconds."""
    begin = time.monotonic()
    folder = Path(temporary, str(os.getpid()))
    if isinstance(mutant, str):
        return run_tests(folder, mutant, timeout), time.monotonic() - begin
    path = folder / mutant.path
    original = path.read_bytes()
    _write_source(path, mutant.text(original))
    code = run_tests(folder, mutant.module, timeout)
    _write_source(path, original)
    return code, time.monotonic() - begin


def _write_source(path: Path, text: bytes) -> None:
    """Write a module, and drop what was compiled: its size and time may be those of the text."""
    path.write_bytes(text)
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


def run(chosen: Iterable[Mutant], jobs: int) -> bool:
    """Test the mutants, print those that survive and a table, and return whether they are few."""
    of_modules: dict[str, list[Mutant]] = {}
    for mutant in chosen:
        of_modules.setdefault(mutant.module, []).append(mutant)
    survivors: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        os.chmod(temporary, 0o755)  # some tests run as another user, who reads the copy
        context, arguments = multiprocessing.get_context("fork"), (ROOT, temporary)
        with ProcessPoolExecutor(jobs, context, _start_worker, arguments) as pool:
            for module, mutants in of_modules.items():
                code, seconds = pool.submit(test_mutant, module, temporary, 600).result()
                if code:
                    sys.exit(f"{module}: its tests fail without a mutant (exit code {code})")
                timeout = seconds * TIMEOUT_FACTOR + TIMEOUT_SECONDS
                runs = [pool.submit(test_mutant, mutant, temporary, timeout) for mutant in mutants]
                for mutant, run_of_mutant in zip(mutants, runs, strict=True):
                    if run_of_mutant.result()[0] == 0:
                        survivors[module] += 1
                        print(mutant, flush=True)
    print(f"{'module':12} mutants killed survived")
    for module, mutants in of_modules.items():
        number, survived = len(mutants), survivors[module]
        print(f"{module:12} {number:7} {number - survived:6} {survived:8} {survived / number:5.1%}")
    number, survived = sum(map(len, of_modules.values())), survivors.total()
    print(f"{'all':12} {number:7} {number - survived:6} {survived:8} {survived / number:5.1%}")
    return survived <= MOST_SURVIVORS * number


def main(arguments: list[str]) -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser("tools.mutate", usage=__doc__)
    parser.add_argument("command", choices=["list", "run", "show"])
    parser.add_argument("names", nargs="*")
    for option, default in (("--seed", 1), ("--number", 20), ("--jobs", 1)):
        parser.add_argument(option, type=int, default=default)
    options = parser.parse_intermixed_args(arguments)
    equivalent = {tuple(row["key"]) for row in TABLE.get("equivalent", [])}
    chosen = []
    for module, row in TABLE["modules"].items():
        mutants = mutants_of(module, row["file"], row.get("names", ()), ROOT)
        if not options.names or module in options.names:
            chosen += choose(mutants, options.number, options.seed)
        chosen += [mutant for mutant in mutants if mutant.id in options.names]
    if options.command == "show":
        for mutant in chosen:
            original = (ROOT / mutant.path).read_bytes()
            before = original.decode().splitlines(keepends=True)
            after = mutant.text(original).decode().splitlines(keepends=True)
            print(mutant, "".join(difflib.unified_diff(before, after, n=2)), sep="\n")
    chosen = [mutant for mutant in chosen if mutant.key not in equivalent]
    if options.command == "list":
        print(*chosen, sep="\n")
    if options.command == "run" and not run(chosen, options.jobs):
        sys.exit(f"More than {MOST_SURVIVORS:.0%} survive: write the missing tests.")


if __name__ == "__main__":
    main(sys.argv[1:])
