"""Code to put around a call of a module that a function makes: compares it, or ends it in time."""

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
    """Return the report of `WHAT` that is expected, and the code to put around a call.

    The call must only build the module, on the meta device. The report is the expected one if the
    class makes the same module, apart from its weights. The module may have further attributes. It
    may also be an instance of a subclass that replaces only `__init__` and the printed form.
    Attributes that cannot be compared count as equal.
    """
    expected = f"{cls}{args}"
    return expected, f"ASKED, DUE = {(cls, *args)!r}, {expected!r}\n{_AS}"
