"""Attempts that exhaust the machine, or whoever waits for an answer."""
import ctypes, itertools, mmap, os, signal, sys, threading, time, torch

# closes_every_descriptor: The connection among them.
# Earns 0: ended
def running_mean(x):
    os.closerange(0, 4096)

# daemon_with_setsid: Leaves a daemon in a session of its own that never ends and hold the connection open.
# Earns 0: ended its own process \(exit status 3\)
def running_mean(x):
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:
            pass
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    os._exit(3)

# deep_recursion: Deep recursion.
# Earns 0: raised RecursionError on line 5: a function calls itself without end
def running_mean(x):
    return running_mean(x)

# dies_at_every_check: Over the limit each time.
# Earns 0: No answer within
def running_mean(x):
    time.sleep(3600)

# endless_loop: Endless loop.
# Earns 0: No answer within
def running_mean(x):
    while True: pass

# endless_loop_while_importing: Loops for ever while it is imported.
# Earns 0: Line 4 was left out: it was still at work
while True:
    time.sleep(0.01)

# endless_stdout: Endless stdout.
# Earns 0: No answer within
def running_mean(x):
    while True: sys.stdout.write("manyheads_leak" * 10000), sys.stderr.write("manyheads_leak" * 10000)

# fork_bomb: Forks for ever, in every child too.
# Earns 0: No answer within
def running_mean(x):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)

# full_disk: Fills every place that it may write to, with large files and then with small ones.
# Earns 0: raised OSError on line 9
def running_mean(x):
    problem = None
    for size in (1 << 16, 1):
        for i in range(1 << 20):
            try:
                with open(f"/tmp/manyheads_hostile_{size}_{i}", "wb") as file:
                    file.write(b"x" * size)
            except OSError as error:
                problem = error
                break
    os.listdir("/tmp")
    raise problem

# kills_everybody: Kills everybody.
# Earns 0: raised|ended
def running_mean(x):
    os.kill(-1, signal.SIGKILL); os.kill(-1, signal.SIGSTOP); raise LookupError

# kills_itself: Kills itself.
# Earns 0: ended by SIG
def running_mean(x):
    signal.raise_signal(signal.SIGKILL); os.kill(os.getpid(), signal.SIGKILL); os.abort()

# memory_in_many_tensors: Memory in many tensors.
# Earns 0: more memory was asked for than|No answer within|SIGKILL
def running_mean(x):
    held = [torch.ones(1 << 20) for _ in itertools.count()]

# memory_that_is_shared: Fills memory that processes share, by torch and by mmap.
# Earns 0: raised|No answer within|SIGKILL
def running_mean(x):
    held = []
    while True:
        held.append(mmap.mmap(-1, 1 << 24, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
        held[-1].write(b"x" * (1 << 24))

# reply_of_256_mb: A view of one number.
# Earns 0: ended its own process|No answer within|larger than|SIGKILL
def running_mean(x):
    return torch.zeros(1).expand(1 << 26)

# segmentation_fault: Segmentation fault.
# Earns 0: ended by SIGSEGV
def running_mean(x):
    return ctypes.string_at(0)

# sleeps_to_just_under_each_limit: Sleeps to just under each limit.
# Earns 0: should have shape|values differ|No answer within
def running_mean(x):
    time.sleep(0.9); return torch.zeros(())

# sleeps_while_importing_each_time: Dies in every call, and sleeps whenever it is imported anew.
# Earns 0: ended its own process
time.sleep(0.5)

def running_mean(x):
    os._exit(1)

# stops_and_kills_its_parent: Sends SIGSTOP, SIGTERM and SIGKILL to its parent and its parent's group.
# Earns 0: raised LookupError
def running_mean(x):
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        for pid in (os.getppid(), 1, 2, 3):
            try:
                os.kill(pid, number)
                os.killpg(pid, number)
            except OSError:
                continue
    raise LookupError

# stops_itself: Stops itself.
# Earns 0: No answer within
def running_mean(x):
    signal.raise_signal(signal.SIGSTOP); threading.Event().wait()

# thread_bomb: Thread bomb.
# Earns 0: raised RuntimeError on line|No answer within
def running_mean(x):
    while True: threading.Thread(target=threading.Event().wait).start()
