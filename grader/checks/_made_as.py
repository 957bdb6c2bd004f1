"""What stands around the building and the calls of a module that a function makes."""

WHAT = "what it makes"
_AS = f"""
from contextlib import nullcontext
from torch import nn

class Empty(nn.Module):
    __init__ = extra_repr = __repr__ = None

def around(made, build):
    twin = build(*ASKED).to("meta")
    kind, base = type(made), type(twin)
    own = kind.__mro__[: kind.__mro__.index(base)] if issubclass(kind, base) else (object,)
    mine = {{
        name: value
        for name, value in vars(made).items()
        if name in vars(twin) or hasattr(kind, name)
    }}
    same = is_same(mine | {{"training": twin.training}}, vars(twin))
    due = {{*dir(twin)}} - vars(Empty).keys()
    alike = same and not any(vars(each).keys() & due for each in own)
    vars(made)[{WHAT!r}] = DUE if alike else "something else"
    return nullcontext()
"""

STILL_AT_WORK = """
from torch.overrides import TorchFunctionMode

class Counting(TorchFunctionMode):
    left = 20_000

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.left -= 1
        if not self.left:
            raise GeneratorExit  # which no `except Exception` catches
        return func(*args, **(kwargs or {}))

def around(made, build):
    return Counting()
"""


def made_as(cls: str, *args: int) -> tuple[str, str]:
    """Return what is to be reported of `WHAT`, and what to put around a call that only builds on
    the meta device.

    It is due where all that a module computes with, but for its weights, is as in what the class
    makes. The module may have further attributes, and be of a class below that replaces no more
    than `__init__` and what is printed. What cannot be compared is not different.
    """
    expected = f"{cls}{args}"
    return expected, f"ASKED, DUE = {(cls, *args)!r}, {expected!r}\n{_AS}"
