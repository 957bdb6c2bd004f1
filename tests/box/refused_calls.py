"""System calls that reach another attempt, a later run or the judge. Each expression
raises OSError, or is -1, where it fails; the test asks that the box refuses it, whatever the kernel would say."""

PRELUDE = """
import ctypes, errno, fcntl, mmap, os, resource, socket, struct, subprocess, sys, torch

libc = ctypes.CDLL(None, use_errno=True)
shared = os.open(os.__file__, os.O_RDONLY)  # a file that every attempt can read
size = os.fstat(shared).st_size
page = mmap.mmap(shared, 4096, mmap.MAP_SHARED, mmap.PROT_READ)

def address():
    return ctypes.c_void_p(torch.frombuffer(page, dtype=torch.uint8).data_ptr())

def pipe():
    return os.pipe()

def pair():
    return socket.socketpair()[0]

def works(act):
    ctypes.set_errno(0)
    try:
        if act() != -1:
            return 1.0
        error = ctypes.get_errno()
    except ValueError:  # what resource.setrlimit makes of EPERM
        return 0.0
    except OSError as raised:
        error = raised.errno
    return float(error not in (errno.EPERM, errno.ENOSYS, errno.EROFS))  # any other is the kernel's word on a call that came through
"""

CARRIES_A_MESSAGE = {
    "asks whether a page is in the cache, by preadv2": "os.preadv(shared, [bytearray(1)], 0, os.RWF_NOWAIT)",
    "writes with flags, by pwritev2": "os.pwritev(os.open('/tmp/m', os.O_RDWR | os.O_CREAT), [b'x'], 0, os.RWF_HIPRI)",
    "drops pages from the cache, by fadvise": "os.posix_fadvise(shared, 0, 0, os.POSIX_FADV_DONTNEED) or 1",
    "brings pages into the cache, by readahead": "libc.readahead(shared, ctypes.c_long(0), 4096)",
    "asks which pages are in the cache, by mincore": "libc.mincore(address(), 4096, ctypes.create_string_buffer(1))",
    "asks how many pages are in the cache, by cachestat": "libc.syscall(451, shared, ctypes.create_string_buffer(16), "
    "ctypes.create_string_buffer(40), 0)",
    "writes a file's pages back": "libc.sync_file_range(shared, ctypes.c_long(0), ctypes.c_long(0), 0)",
    "moves pages of a file into a pipe": "libc.splice(shared, None, pipe()[1], None, 1, 0)",
    "copies pages of a file into a pipe": "os.sendfile(pipe()[1], shared, 0, 1)",
    "gives memory to a pipe": "libc.vmsplice(pipe()[1], (ctypes.c_ulong * 2)(address().value, 1), 1, 0)",
    "locks a file's pages into memory": "libc.mlock(address(), 4096)",
    "locks a file's pages into memory as it maps them": "libc.mmap(None, 4096, 1, 0x2002, shared, 0)",
    "takes a file's pages out of memory": "page.madvise(21) or 1",
    "calls a file's pages cold": "page.madvise(20) or 1",
    "brings a file's pages into memory": "page.madvise(22) or 1",
    "shares equal pages with others": "mmap.mmap(-1, 4096).madvise(mmap.MADV_MERGEABLE) or 1",
    "opens a path only if it is in the cache": "libc.syscall(437, -100, b'/', (ctypes.c_uint64 * 3)(0x80000, 0, 0x20), 24)",
    "leaves a hint on a file": "fcntl.fcntl(os.open('/tmp/m', os.O_RDWR | os.O_CREAT), 1036, struct.pack('Q', 2)) and 1",
    "reads a hint on a file": "fcntl.fcntl(shared, 1035, struct.pack('Q', 0)) and 1",
    "leaves a hint on an open file": "fcntl.fcntl(os.open('/tmp/m', os.O_RDWR | os.O_CREAT), 1038, struct.pack('Q', 2)) and 1",
    "leaves the time on a device that everybody has": "os.utime('/dev/null') or 1",
    "leaves the time on another": "os.utime('/dev/urandom') or 1",
    "watches a file": "libc.inotify_init1(0)",
    "takes a lease on a file": "fcntl.fcntl(shared, fcntl.F_SETLEASE, fcntl.F_RDLCK) or 1",
    "locks a file": "libc.flock(shared, 1)",
}
REACHES_OUT = {
    "has a signal sent by fcntl": "fcntl.fcntl(pipe()[0], fcntl.F_SETOWN, 1) or 1",
    "has a signal sent by ioctl, FIOSETOWN": "fcntl.ioctl(pair(), 0x8901, struct.pack('i', 1)) and 1",
    "has a signal sent by ioctl, SIOCSPGRP": "fcntl.ioctl(pair(), 0x8902, struct.pack('i', 1)) and 1",
    "has a signal sent whenever something comes, by ioctl": "fcntl.ioctl(pipe()[0], 0x5452, struct.pack('i', 1)) and 1",
    "has a signal sent whenever something comes, by fcntl": "fcntl.fcntl(pipe()[0], fcntl.F_SETFL, 0x2000) or 1",
    "lists network interfaces": "fcntl.ioctl(pair(), 0x8912, struct.pack('iP', 0, 0)) and 1",
    "binds an abstract name": "pair().bind('\\0manyheads_hostile') or 1",
    "connects": "pair().connect('\\0manyheads_hostile') or 1",
    "makes a pair of sockets of another family": "libc.socketpair(30, 5, 0, (ctypes.c_int * 2)())",
    "lets its core be dumped": "libc.prctl(4, 1, 0, 0, 0)",
    "lifts the bound on its core": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0)) or 1",
    "starts a program": "subprocess.run([sys.executable, '-I', '-S', '-c', '']) and 1",
    "takes huge pages of the machine": "libc.memfd_create(b'm', 4)",
}
