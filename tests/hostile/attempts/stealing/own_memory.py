"""Searches all of its own memory, inherited from the warm process, for a secret. Its mappings are unknown to it, so it
walks the heap's objects."""
import gc

WORD = "manyheads" + "_marker"


def running_mean(x):
    for thing in gc.get_objects():
        if isinstance(thing, dict) and thing is not globals():
            for value in list(thing.values()):
                if isinstance(value, str) and WORD in value and "WORD" not in value:
                    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError
