"""What a fork makes stands on pages of its own, and copies few of its parent's."""

import json
import subprocess
import sys

import pytest

WARM = """
import ctypes, json, os, resource, sys

def heap_with_holes():
    blocks = [libc.malloc(1000) for _ in range(8000)]
    return [libc.free(block) for block in blocks[::8]]

def pools_with_holes():
    objects = [bytes(200) for _ in range(40000)]
    del objects[::8]
    return objects

def pages_copied(make):
    reader, writer = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        kept = make()
        os.write(writer, str(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before).encode())
        os._exit(0)
    os.wait()
    return int(os.read(reader, 20))

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_size_t, (ctypes.c_size_t,), (ctypes.c_size_t,)
MAKES = {"heap": lambda: [libc.memset(ctypes.c_void_p(libc.malloc(1000)), 1, 1000) for _ in range(1000)],
         "pools": lambda: [bytes(200) for _ in range(5000)]}
kept = {"heap": heap_with_holes, "pools": pools_with_holes}[sys.argv[1]]()
before = pages_copied(MAKES[sys.argv[1]])
from manyheads.box.worker.zygote import fill_free_blocks
filled = fill_free_blocks()
print(json.dumps([before, pages_copied(MAKES[sys.argv[1]])]))
"""


@pytest.mark.parametrize("where", ["heap", "pools"])
def test_after_the_holes_are_filled_a_fork_that_makes_the_same_copies_less_than_half_as_many_pages(where: str) -> None:
    out = subprocess.run([sys.executable, "-c", WARM, where], capture_output=True, text=True, check=True)
    before, after = json.loads(out.stdout)
    assert after < before / 2
