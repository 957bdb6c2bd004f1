"""Raises with every path that it knows in the text, and from code that says it stands in another file."""
import os
import sys


def running_mean(x):
    paths = [*sys.path, sys.prefix, sys.executable, __file__, os.getcwd()]
    exec(compile("raise RuntimeError(words)", "/etc/manyheads_leak.py", "exec"), {"words": "\n".join(paths)})
