"""Drop to an unprivileged uid, then exec bubblewrap, before any student code exists.

Bubblewrap run by root is not a sandbox, so root drops to a uid that owns nothing. That uid may be unable to reach the
interpreter (for example in a virtual environment below /root). Root therefore first bind-mounts the box's contents to
a folder that everybody can enter, in a mount namespace that ends with this process.

A request has `bwrap` (path), `arguments` (for bwrap, with "{n}" for the n-th source), `command` (what to run in the box),
`sources` (paths) and `uid` (or None, when not root).
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x00020000, 0x1000, 0x4000, 1 << 18
_STAGES = ("/mnt", "/media", "/srv", "/run", "/tmp")


def become_box(request: dict[str, Any], parent: int) -> NoReturn:
    """Start the box in this process, a child of `parent`, and end with it."""
    sources: list[str] = request["sources"]
    if request["uid"] is not None:
        sources = _stage(sources)
        os.setgroups([])
        os.setresgid(request["uid"], request["uid"], request["uid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the uid, whose change undoes it
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)
    arguments = [a.format(*sources) if a.startswith("{") else a for a in request["arguments"]]
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    if os.fork() == 0:  # a child writes the arguments, which may be longer than the pipe's buffer
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(b"".join(a.encode() + b"\0" for a in arguments))
        os._exit(0)
    os.close(writer)
    os.execv(request["bwrap"], ["bwrap", "--args", str(reader), "--", *request["command"]])


def _stage(sources: list[str]) -> list[str]:
    """Bind-mount every source below one folder that everybody may enter. Returns the new paths."""
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
        texts = [None if t is None else t.encode() for t in (source, target, kind)]
        if libc.mount(*texts, ctypes.c_ulong(flags), None if options is None else options.encode()):
            raise OSError(ctypes.get_errno(), f"cannot mount {source} on {target}")

    stage = next(s for s in _STAGES if os.path.isdir(s) and not any(p == s or p.startswith(s + "/") for p in sources))
    if libc.unshare(_NEWNS):
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")
    mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    mount("tmpfs", stage, "tmpfs", 0, "size=1m,mode=0755")
    staged = []
    for i, source in enumerate(sources):
        target = f"{stage}/{i}"
        if os.path.isdir(source):
            os.mkdir(target)
        else:
            open(target, "w").close()
        mount(source, target, None, _MS_BIND | _MS_REC)
        staged.append(target)
    return staged
