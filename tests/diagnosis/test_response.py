"""The digest of an attempt is made from text that is the same in every process."""

import os
import subprocess
import sys

SCRIPT = """
from manyheads.diagnosis.fault_dictionary import _Names
print([_Names(), _Names(["a"]), _Names(["k.weight", "q.weight", "v.weight", "proj.weight"])])
"""


def test_sets_of_names_print_the_same_for_every_hash_seed() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert printed == {
        "[frozenset(), frozenset({'a'}), "
        "frozenset({'k.weight', 'proj.weight', 'q.weight', 'v.weight'})]\n"
    }
