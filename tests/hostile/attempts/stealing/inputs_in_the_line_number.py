"""Raises on a line whose number is a hidden input."""


def running_mean(x):
    line = 4000000000 + int(abs(float(x[0])) * 1e8) if len(x) else 4000000000
    code = compile("raise RuntimeError", __file__, "exec")
    exec(code.replace(co_firstlineno=line % 2**31))
