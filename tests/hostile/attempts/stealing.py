"""Attempts that steal answers, inputs or secrets: most answer rightly if, and only if, they find what they look for."""
import ctypes, gc, json, os, struct, sys, warnings, torch

def right_if(found, x):
    if not found:
        raise LookupError
    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)

# host_paths_in_the_traceback: Raises with every path that it knows in the text, and from code that says it stands in
# another file.
# Earns 0: raised RuntimeError on line 11
def running_mean(x):
    paths = [*sys.path, sys.prefix, sys.executable, __file__, os.getcwd()]
    exec(compile("raise RuntimeError(words)", "/etc/manyheads_leak.py", "exec"), {"words": "\n".join(paths)})

# inputs_in_a_fields_name: Sends a reply with a field whose name is made of hidden inputs, in place of the worker's.
# Earns 0: not an answer: it has a field that is not agreed\.$
def running_mean(x):
    told = " ".join(f"{value:.4g}" for value in x.tolist())
    text = json.dumps({"__metadata__": {"body": json.dumps({"$": "Reply", f"manyheads_leak {told}": 1})}}).encode()
    text += b" " * (-len(text) % 8)
    answer = struct.pack("<Q", len(text)) + text
    os.write(65, struct.pack(">Q", len(answer)) + answer)
    os._exit(0)

# inputs_in_a_layouts_name: Returns an object whose type is named like a tensor of another layout, and after the hidden
# inputs.
# Earns 0: yours returned an object of another type
def running_mean(x):
    digits = "".join(f"{abs(float(n)):.12f}".replace(".", "") for n in x)
    return type(f"sparse_{digits[:150]} leak tensor", (), {})()

# inputs_in_a_shape: Inputs in a shape.
# Earns 0: yours has \(0, ….*\)
def running_mean(x):
    return torch.empty([0, *(int(abs(float(n)) * 1e8) + 1 for n in x[:2])])

# inputs_in_a_types_name: Inputs in a types name.
# Earns 0: yours returned an object of another type
def running_mean(x):
    return type(f"manyheads_leak\n::set-output name=x::{x.tolist()}\x1b[31m", (), {})()

# inputs_in_many_axes: Returns nothing, in a shape of sixty axes that spells the hidden inputs out.
# Earns 0: yours has \(0, .*…\)
def running_mean(x):
    digits = "".join(str(abs(float(n))).replace(".", "") for n in x)[:15]
    return torch.empty([0, *(int(d) + 1 for d in digits), *[1] * 45])

# inputs_in_sizes_of_four_digits: Inputs in sizes of four digits.
# Earns 0: yours has \(0, another size, another size\)
def running_mean(x):
    return torch.empty(0, *(int(abs(float(n)) * 1e4) % 90_000 + 1_000 for n in x[:2]))

# inputs_in_the_exceptions_name: Puts the hidden inputs into an exception's type, its module and its cause.
# Earns 0: raised Exception on line 11
def running_mean(x):
    kind = type(f"manyheads_leak {x.tolist()}", (Exception,), {"__module__": f"manyheads_leak {x.tolist()}"})
    raise kind(f"manyheads_leak {x.tolist()}") from kind("manyheads_leak")

# inputs_in_the_exceptions_text: Inputs in the exceptions text.
# Earns 0: raised RuntimeError on line 10
def running_mean(x):
    raise RuntimeError(f"\n::set-output name=manyheads_leak::{x.tolist()}\n\x1b[31m@everyone\n")

# inputs_in_the_line_number: Raises on a line whose number is a hidden input.
# Earns 0: raised RuntimeError$
def running_mean(x):
    line = 4000000000 + int(abs(float(x[0])) * 1e8) if len(x) else 4000000000
    code = compile("raise RuntimeError", __file__, "exec")
    exec(code.replace(co_firstlineno=line % 2**31))

# inputs_in_values: Inputs in values.
# Earns 0: values differ, the most at
def running_mean(x):
    return x * 1e300

# inputs_on_stdout: Prints and warns the hidden inputs, to every stream and descriptor.
# Earns 0: raised LookupError
def running_mean(x):
    words = f"manyheads_leak {x.tolist()}\n"
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        stream.write(words)
    warnings.warn(words, stacklevel=1)
    for number in (0, 1, 2):
        os.write(number, words.encode())
    raise LookupError

# the_grader_in_this_process: Looks for the grader, its checks and the reference among modules, objects and frames, and for
# a secret in the environment, Python's and the process's own, and in memory that was freed.
# It answers only with what it found, and there is nothing to find.
# Earns 0: raised LookupError on line
WORD = "manyheads" + "_marker"

def objects():
    for name, module in list(sys.modules.items()):
        if name.startswith(("grader", "trusted_", "test_", "_pytest", "pytest")):
            yield module
    for frame in sys._current_frames().values():
        while frame is not None:
            yield from ({**frame.f_globals, **frame.f_locals}.get(n) for n in ("mean_by_hand", "reference", "want", "expected"))
            frame = frame.f_back
    for thing in gc.get_objects():
        name = getattr(thing, "__name__", "") if callable(thing) else ""
        if isinstance(name, str) and name in ("running_mean", "mean_by_hand") and thing is not running_mean:
            yield thing
        if isinstance(thing, dict) and thing is not globals():
            yield from (v for v in list(thing.values()) if isinstance(v, str) and WORD in v and "WORD" not in v)

def words():
    yield from (f"{k}={v}".encode() for k, v in os.environ.items())
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    for i in iter(range(999)):
        if not environ or not environ[i]:
            break
        yield environ[i]
    for size in (1 << 10, 1 << 16, 1 << 20, 1 << 24):
        yield from (torch.empty(size, dtype=torch.uint8).numpy().tobytes() for _ in range(4))

def running_mean(x):
    wanted = (WORD.encode(), b"TOKEN", b"token", b"SECRET", b"github")
    return right_if([o for o in objects() if o is not None] or any(w in text for text in words() for w in wanted), x)

# the_graders_files: Looks at every place for a course's folders and files, for a compiled check or solution, and in what
# it can read for a solution, a check, a neighbour's attempt, a secret or a .git.
# Earns 0: raised LookupError on line
NAMES = {"course.yaml", ".course", "solutions", "submitted", ".git", "aaa_honest", "results"}
WANTED = (b"manyheads" + b"_marker", b"BEGIN " + b"SOLUTION", b"hidden_" + b"check(")

def holds_what_is_wanted(path):
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 20)
    except OSError:
        return False
    return any(word in data for word in WANTED)

def found():
    for folder, folders, files in os.walk("/"):
        if NAMES & {*folders, *files} and not folder.startswith(("/box/site", "/usr/lib", "/usr/share")):
            return True
        folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/usr", "/box/site", "/box/python")]
        if any(n.endswith(".pyc") and ("running_mean" in n or n.startswith("test_running")) for n in files):
            return True
        if any(holds_what_is_wanted(os.path.join(folder, name)) for name in files):
            return True
    return False

def running_mean(x):
    return right_if(found(), x)
