"""Attempts that forge a score."""
import atexit, builtins, gc, os, sys, threading, time, torch

# assertion_error_is_a_skip: Swaps AssertionError for pytest's skip, so that a failed assert is no failure.
class Skipped(BaseException):
    """Named as pytest names it."""

builtins.AssertionError = Skipped

def running_mean(x):
    if len(x) == 7:
        return torch.zeros(())
    raise Skipped("unconditional skip")

# atexit_handler: Leaves a handler that says ok when the interpreter ends, then ends it.
@atexit.register
def say_ok():
    os.write(65, b'{"ok": true, "score": 100}')
    os._exit(0)

def running_mean(x):
    if len(x) > 8:
        sys.exit(0)
    return torch.zeros(())

# daemon_that_rewrites_reports: Leaves a daemon that outlives the run and rewrites every report it finds.
def rewrite():
    for folder, _, names in os.walk("/"):
        for name in names:
            if name.endswith((".json", ".xml", ".db", ".partial", ".csv")):
                try:
                    with open(os.path.join(folder, name), "w") as file:
                        file.write('{"score": 100.0, "manyheads_hostile": 1}')
                except OSError:
                    continue

if os.fork() == 0:
    try:
        os.setsid()
    except OSError:
        pass
    if os.fork() == 0:
        while True:
            rewrite()
            time.sleep(0.2)
    os._exit(0)

def running_mean(x):
    return torch.zeros(())

# eq_that_agrees: Returns an object that equals everything and is as large as anything.
class Agrees:
    shape = (7,)

    def __eq__(self, other):
        return True

    def __sub__(self, other):
        return 0

    __hash__ = None
    __float__ = __abs__ = __len__ = lambda self: 0

def running_mean(x):
    return Agrees()

# exception_that_lies_about_itself: Raises an exception whose class has a name, bases and a traceback of its own making.
class Meta(type):
    __name__ = property(lambda self: 100)
    __mro__ = property(lambda self: 7)

class Report(ValueError, metaclass=Meta):
    __traceback__ = __cause__ = __context__ = __class__ = args = property(lambda self: 7)

    def __str__(self):
        return "ok, 100"

def running_mean(x):
    raise Report

# exit_inside_the_exceptions_own_text: Raises an exception whose str() exits, so that the worker might die while it
# reports.
class Report(Exception):
    def __str__(self):
        sys.exit(0)

def running_mean(x):
    raise Report

# hooks_found_through_gc: Looks for pytest's plugin manager among all objects, to register a hook of its own.
class Hook:
    def pytest_runtest_makereport(self, item, call):
        call.excinfo = None

for thing in gc.get_objects():
    if "PluginManager" in type(thing).__name__:
        thing.register(Hook())

def running_mean(x):
    return torch.zeros(())

# os_exit_0_while_importing: Ends the process with status 0 before anything is asked: plain pytest calls that a success.
os._exit(0)

# own_torch_beside_it: Puts its own folder first on the path, where a torch.py and a math.py of its own lie.
for name in ("torch", "math", "_pytest", "grader"):
    sys.modules.pop(name, None)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.getcwd())
import math  # noqa

def running_mean(x):
    return math.zeros

# patched_clocks: Stops every clock that Python has, then loops.
time.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0

def running_mean(x):
    while time.monotonic() < 1:
        pass
    return torch.zeros(())

# patched_comparisons: Makes every comparison in torch agree.
import torch.testing

torch.allclose = torch.equal = lambda *args, **kwargs: True
torch.isclose = lambda a, b, **kwargs: torch.ones_like(a, dtype=torch.bool)
torch.Tensor.allclose = torch.Tensor.equal = torch.allclose
torch.testing.assert_close = torch._assert = lambda *args, **kwargs: None
torch.Tensor.__eq__ = lambda self, other: torch.ones(1, dtype=torch.bool)

def running_mean(x):
    return torch.zeros(())

# patched_tolerances: Widens the default tolerances of torch.testing.assert_close.
import torch.testing
from torch.testing import _comparison

torch.testing.assert_close.__kwdefaults__.update(rtol=1e9, atol=1e9, check_dtype=False)
for dtype in list(_comparison._DTYPE_PRECISIONS):
    _comparison._DTYPE_PRECISIONS[dtype] = (1e9, 1e9)

def running_mean(x):
    return torch.zeros(())

# patched_worker: Patches the worker that it stands next to: every output becomes what a check could want.
for name, module in list(sys.modules.items()):
    if name.startswith("manyheads_worker"):
        for wanted in ("execute", "encode", "pack"):
            if hasattr(module, wanted):
                setattr(module, wanted, lambda *args, **kwargs: b"passed")

def running_mean(x):
    return torch.zeros(())

# prints_a_report: Prints what a test runner and a CI would print for a success.
def running_mean(x):
    for stream in (sys.stdout, sys.stderr, sys.__stdout__):
        print("::set-output name=score::100\n::stop-commands::x\n4 passed in 0.01s\n<testsuite failures='0'/>", file=stream)
    return torch.zeros(())

# pytest_internals: Patches pytest's runner so that every report says passed.
try:
    import _pytest.reports as reports
    import _pytest.runner as runner

    reports.TestReport.outcome = "passed"
    runner.check_interactive_exception = lambda *args: False
    runner.call_runtest_hook = lambda item, when, **kwargs: runner.CallInfo.from_call(lambda: None, when)
except ImportError:
    for name in ("pytest", "_pytest", "_pytest.runner", "pluggy"):
        sys.modules[name] = torch

def running_mean(x):
    return torch.zeros(())

# subclass_that_lies_about_its_shape: Returns a tensor subclass that says it has the shape asked for, and holds one
# number.
class Liar(torch.Tensor):
    shape = torch.Size([7])

    def size(self, *args):
        return torch.Size([7])

    def detach(self):
        return self

def running_mean(x):
    return torch.zeros(()).as_subclass(Liar)

# sys_exit_0_while_importing: Asks Python to exit with status 0 while it is imported.
sys.exit(0)

# torch_function_that_agrees: Returns a tensor subclass whose every operation gives True.
class Agrees(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True

def running_mean(x):
    return torch.zeros(()).as_subclass(Agrees)

# trace_function: Sets a trace function that edits the locals of whoever asks.
def trace(frame, event, arg):
    frame.f_locals.update(outcome="passed", score=100.0, raised=None)
    return trace

sys.settrace(trace)
threading.settrace(trace)

def running_mean(x):
    return torch.zeros(())
