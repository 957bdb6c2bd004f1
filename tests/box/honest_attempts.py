"""Bodies of a function `f()` that do what honest attempts may do; each returns 1.0 on success.

The allowed system calls were recorded from these bodies. `test_system_calls` runs each in a box.
"""

BODIES = {
    "large tensors that grow and shrink, and one in half precision": """
    kept = [torch.randn(300, 400 * n) for n in range(1, 9)]
    kept = [torch.cat([t, t]) @ torch.ones(t.shape[1], 3) for t in kept]
    return float(len(kept) == 8 and torch.ones(8).half().float().sum() == 8)""",
    "a function and a layer that are compiled": """
    @torch.compile
    def doubled(x):
        return 2 * x
    layer = torch.compile(torch.nn.Linear(2, 3), fullgraph=True)
    return float(doubled(torch.ones(2)).sum() == 4 and layer(torch.ones(1, 2)).shape == (1, 3))""",
    "a model that learns": """
    layer = torch.nn.Linear(8, 8)
    step = torch.optim.AdamW(layer.parameters())
    for _ in range(3):
        step.zero_grad()
        with torch.enable_grad():  # calls run without gradients
            layer(torch.randn(4, 8)).square().mean().backward()
        step.step()
    return 1.0""",
    "threads of Python and of torch": """
    import concurrent.futures, threading
    torch.set_num_threads(4)
    torch.randn(400, 400) @ torch.randn(400, 400)
    done = []
    threads = [threading.Thread(target=done.append, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        done += pool.map(abs, range(4))
    return float(len(done) == 8)""",
    "a queue, an event and a timer": """
    import queue, threading
    q, event = queue.Queue(), threading.Event()
    threading.Timer(0.01, lambda: (q.put(1), event.set())).start()
    return float(event.wait(5) and q.get(timeout=5))""",
    "a traceback with lines and its own source": """
    import inspect, linecache, traceback, warnings
    warnings.warn("careful")
    try:
        1 / 0
    except ZeroDivisionError:
        text = traceback.format_exc()
    return float("1 / 0" in text and "def f" in inspect.getsource(f))""",
    "files of its own": """
    import pathlib, shutil, tempfile
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as file:
        path = pathlib.Path(folder, "a.txt")
        path.write_text("text")
        shutil.copy2(path, path.with_name("b.txt"))
        shutil.copytree(folder, folder + "/deeper/still")
        path.with_name("b.txt").rename(path.with_name("c.txt"))
        path.chmod(0o600)
        path.touch()
        os.truncate(path, 2)
        file.write("x")
        file.flush()
        os.fsync(file.fileno())
        shutil.disk_usage(folder)
        found = [p.name for p in sorted(pathlib.Path(folder).rglob("*.txt"))]
    return float(found.count("c.txt") == 1 and not os.path.exists(folder))""",
    "a tensor saved and loaded, also as a mapping": """
    torch.save({"w": torch.arange(4.0)}, "/tmp/w.pt")
    ways = [torch.load("/tmp/w.pt")["w"], torch.load("/tmp/w.pt", mmap=True)["w"]]
    return float(all(w.sum() == 6 for w in ways))""",
    "a tensor in shared memory, written by a child": """
    shared = torch.zeros(4).share_memory_()
    if os.fork() == 0:
        shared.fill_(1)
        os._exit(0)
    os.wait()
    return float(shared.sum() == 4)""",
    "NumPy, also as a mapping": """
    import numpy as np
    np.save("/tmp/a.npy", np.arange(5))
    mapped = np.memmap("/tmp/m", dtype="float32", mode="w+", shape=(4,))
    mapped[:] = 1
    mapped.flush()
    return float(np.load("/tmp/a.npy", mmap_mode="r").sum() == 10 and np.linalg.norm(np.eye(9)) == \
3)""",
    "modules of the standard library": """
    import asyncio, ctypes, dataclasses, decimal, difflib, enum, functools, getpass, glob, gzip, \
hashlib, http.client
    import json, locale, logging, lzma, mmap, multiprocessing, pickle, platform, pprint, random, \
secrets, select, signal
    import socket, sqlite3, ssl, statistics, subprocess, tarfile, timeit, typing, unittest, \
urllib.request, uuid, zipfile
    random.seed()
    return float(len(str(uuid.uuid4())) == 36 and len(os.urandom(3)) == 3 and \
len(platform.platform()) > 3)""",
    "questions about the machine": """
    import getpass, platform, resource
    os.cpu_count(), os.sched_getaffinity(0), os.getloadavg, os.times(), os.uname(), \
os.getpriority(os.PRIO_PROCESS, 0)
    os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE"), os.getpgrp(), os.getsid(0), \
os.getgroups()
    resource.getrlimit(resource.RLIMIT_STACK), platform.uname(), platform.python_implementation(), \
platform.libc_ver()
    sys.getrecursionlimit(), os.get_terminal_size, sys.stdout.isatty(), torch.get_num_threads(), \
time.get_clock_info("time")
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0)""",
    "printing, also over the line before": """
    for n in range(3):
        print("\\r", n, end="", flush=True)
        print("careful", file=sys.stderr)
    sys.stdout.write("x" * 100_000)
    return 1.0""",
    "clocks and sleep": """
    start = time.perf_counter()
    time.sleep(0.01)
    time.process_time(), time.thread_time(), time.monotonic(), time.time(), time.localtime()
    return float(time.perf_counter() - start >= 0.009)""",
    "a handler of signals and an alarm": """
    import signal
    got = []
    signal.signal(signal.SIGALRM, lambda *a: got.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while not got:
        time.sleep(0.01)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    os.kill(os.getpid(), signal.SIGUSR1)
    return float(signal.sigtimedwait({signal.SIGUSR1}, 5) is not None)""",
    "an event loop": """
    import asyncio
    async def both():
        return await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.to_thread(abs, -1))
    return float(sum(asyncio.run(both())) == 2)""",
    "pipes, pairs of sockets and waiting for them": """
    import select, socket
    reader, writer = os.pipe()
    ours, theirs = socket.socketpair()
    ours.settimeout(1)
    os.write(writer, b"x")
    theirs.sendall(b"y")
    with select.epoll() as waiting:
        waiting.register(reader)
        ready = waiting.poll(1)
    return float(bool(ready and select.select([reader], [], [], 1)[0]) and ours.recv(1) == b"y")""",
    "processes that share a pool of work": """
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return float(pool.map(abs, range(-3, 3)) == [3, 2, 1, 0, 1, 2])""",
    "a script of torch's own language": """
    with open("/tmp/scripted.py", "w") as file:
        file.write("def double(x):\\n    return 2 * x\\n")
    sys.path.insert(0, "/tmp")
    import scripted
    return float(torch.jit.script(scripted.double)(torch.ones(1)) == 2)""",
    "torch's profiler": """
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        torch.randn(4, 4).softmax(-1)
    return float(len(seen.key_averages()) > 0)""",
    "a library by ctypes": """
    import ctypes, ctypes.util
    libc = ctypes.CDLL(None)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), \
ctypes.POINTER(ctypes.c_int))
    numbers = (ctypes.c_int * 3)(3, 1, 2)
    libc.qsort(numbers, 3, 4, compare(lambda a, b: a[0] - b[0]))
    return float(list(numbers) == [1, 2, 3])""",
    "files and mappings": """
    import mmap
    file = os.open("/tmp/mine", os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, 4096)
    with mmap.mmap(file, 4096) as shared, mmap.mmap(-1, 1 << 22) as private:
        shared[:2] = b"ab"
        private.madvise(mmap.MADV_DONTNEED)
        private.resize(1 << 23)
        return float(os.pread(file, 2, 0) == b"ab" and os.preadv(file, [bytearray(1)], 0) == 1)""",
}

# Code that the box refuses, and the exception types that the attempt may get; it then goes on.
REFUSED_KINDLY = {
    "a program": (
        "import subprocess\n    subprocess.run(['ls'])",
        {"PermissionError", "FileNotFoundError"},
    ),
    "a shell": ("return float(os.system('true') != 0) - 1.0 or 1 / 0", {"ZeroDivisionError"}),
    "a connection": (
        "import socket\n    socket.create_connection(('127.0.0.1', 80), 1)",
        {"PermissionError"},
    ),
    "a page of the web": (
        "import urllib.request\n    urllib.request.urlopen('http://example.org')",
        {"URLError"},
    ),
    "a compiler that is switched on again": (
        "del os.environ['TORCHDYNAMO_DISABLE']\n    torch.compile(lambda x: x * 2)(torch.ones(3))",
        {
            "InductorError",
            "BackendCompilerFailed",
            "InvalidCxxCompiler",
            "RuntimeError",
            "KeyError",
            "PermissionError",
        },
    ),
    "another limit": (
        "import resource\n    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
        {"ValueError"},
    ),
}
