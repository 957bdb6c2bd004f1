"""Whether a reply can be an answer to its call. The parser has checked its form; its content is the attempt's claim."""

from __future__ import annotations

import dataclasses

from ..box.worker.answers import Raised, Reply
from ..box.worker.messages import Build, Call, StandIn


def validate_reply(call: Call, reply: Reply) -> str:
    """What the reply contains that no answer to this call can contain; empty if it is possible."""
    builds = [value for value in (call.subject, *call.args, *call.kwargs.values()) if isinstance(value, Build)]
    complete = reply.raised is None
    outputs, modules = 0 if call.only_build else call.runs, len(builds)
    if len(reply.outputs) > outputs or (complete and len(reply.outputs) != outputs):
        return "it has another number of outputs than the call has runs"
    if len(reply.modules) > modules or (complete and len(reply.modules) != modules):
        return "it reports on modules that were not built"
    for facts, build in zip(reply.modules, builds, strict=False):
        if facts.attributes.keys() != set(build.report):
            return "it reports on attributes that were not requested"
    if call.watch != (reply.operations is not None):
        return "it reports on operations that were not watched"
    if reply.gradients and call.cotangent is None:
        return "it gives gradients that were not requested"
    return "" if all(_is_argument(call, name) for name in reply.mutated) else "it names arguments that were not given"


def without_impossible_lines(reply: Reply, lines: int) -> Reply:
    """The reply without line numbers beyond the file's end, by which an attempt could carry out information."""
    if all(each.line is None or each.line <= lines for each in (*filter(None, (reply.raised,)), *reply.stopped)):
        return reply
    raised = None if reply.raised is None else _within(reply.raised, lines)
    return dataclasses.replace(reply, raised=raised, stopped=tuple(_within(each, lines) for each in reply.stopped))


def _within(raised: Raised, lines: int) -> Raised:
    return raised if raised.line is None or raised.line <= lines else dataclasses.replace(raised, line=None)


def _is_argument(call: Call, name: str) -> bool:
    """Whether it is one of the names that the worker gives to what the call can change: "args.0", "kwargs.x", and of a
    module "args.0.proj.weight". Evidence repeats the name, so it must not be the attempt's choice."""
    given = {f"args.{i}": value for i, value in enumerate(call.args)}
    given |= {f"kwargs.{key}": value for key, value in call.kwargs.items()}
    if name in given:
        return True
    modules = {whole: value for whole, value in given.items() if isinstance(value, StandIn)}
    return any(name == f"{whole}.{layer}.weight" for whole, module in modules.items() for layer in module.linears)
