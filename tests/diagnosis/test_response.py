"""What an attempt's digest is made from is the same in every process."""

import os
import subprocess
import sys

SCRIPT = """
from manyheads.diagnosis.fault_dictionary import _Names
print([_Names(), _Names(["a"]), _Names(["k.weight", "q.weight", "v.weight", "proj.weight"])])
"""


def test_cut_gradients_are_written_alike_whatever_the_hash_seed() -> None:
    written = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert written == {
        "[frozenset(), frozenset({'a'}), "
        "frozenset({'k.weight', 'proj.weight', 'q.weight', 'v.weight'})]\n"
    }
