"""The sandbox: the isolated place that an attempt runs in. `open_box` opens one.

Input: a level of isolation and limits; then, for each attempt, a source text and calls with their
tensors. Output: a reply to each call, or an AttemptEnded that says how the process ended.

1. `open_box` starts the processes of the box. At level `namespaces` (`namespaces`), these are a
   reaper (`host_processes`), which starts bubblewrap with the files of `contents`, and in it a
   zygote, which has imported torch. At level `user`, it is a zygote with another uid. At level
   `process`, no process is started yet (`without_namespaces`). A student's own check opens its box
   with `without_namespaces.open_own_box`.
2. `canary.prove` has an attempt of ours try to escape, before any student code runs.
3. `Box.attempt` returns a `Connection` to a new process. The judge sends a request over the control
   socket, and the zygote forks (`zygote_box`). Two pipes carry the messages of the attempt. A
   socket, the lifeline, ends the attempt and reports its exit status. At level `process`, a fresh
   interpreter connects to a socket of the judge instead.
4. `connection.load` sends the source. `Connection.ask` sends a call and waits for the reply, with a
   deadline. `worker` runs student code and answers. `replies` reads the answer as hostile input.
5. `Connection.close` ends the attempt's process and all processes that it started. Leaving the
   `with` block of the box ends the zygote.

Example, with x of shape (2,):

    with open_box(Level.NAMESPACES, limits, course_folder) as box:
        loaded = load(box, limits, Load("def f(x): return 2 * x", "f.py"))
        reply = loaded.connection.ask(Call("f", (x,)), 5.0)  # reply.outputs[0].tensor is 2x
        loaded.connection.close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .level_and_device_names import Device, Level

if TYPE_CHECKING:
    from pathlib import Path

    from .connection import Box
    from .worker.limits import Limits


def open_box(level: Level, limits: Limits, hidden: Path) -> Box:
    """Return a new box of this level, with a running zygote unless the level is `process`.

    Args:
        level: the level of isolation.
        limits: the limits of all attempts together, and their device. Only a box of level
            `namespaces` uses them; `Box.attempt` takes the limits of one attempt.
        hidden: the course's folder. At level `namespaces`, it is not visible inside. At the other
            levels, it is ignored.

    Raises:
        BoxUnavailable: this machine cannot provide the level. At level `process`, `Box.attempt`
            raises it instead.
    """
    if level is Level.NAMESPACES and limits.device == Device.CUDA:
        from .namespaces import GpuBox

        return GpuBox(limits, hidden)
    if level is Level.NAMESPACES:
        from .namespaces import NamespaceBox

        return NamespaceBox(limits, hidden)
    if level is Level.USER:
        from .without_namespaces import UserBox

        return UserBox()
    from .without_namespaces import ProcessBox

    return ProcessBox()
