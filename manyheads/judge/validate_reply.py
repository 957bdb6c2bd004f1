"""Whether a reply can be an answer to its call. The parser has checked its form; its content is the attempt's claim."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

from ..box.worker.answers import Output, Reply
from ..box.worker.form import OPAQUE, Form, read_misfit
from ..box.worker.messages import Build, Call, StandIn
from ..submission.unwritten import is_beside_code


def validate_reply(call: Call, reply: Reply) -> str:
    """What the reply contains that no answer to this call can contain; empty if it is possible."""
    builds = [value for value in call.given if isinstance(value, Build)]
    complete = reply.raised is None
    outputs, modules = call.outputs, len(builds)
    if len(reply.outputs) > outputs or (complete and len(reply.outputs) != outputs):
        return "it has another number of outputs than the call asks for"
    if not all(map(_is_of_form, reply.outputs, cycle(form for _, form in call.form.leaves()))):
        return "it describes a part that is opaque, or parts that were not asked"
    if len(reply.modules) > modules or (complete and len(reply.modules) != modules):
        return "it reports on modules that were not built"
    for facts, build in zip(reply.modules, builds, strict=False):
        if facts.attributes.keys() != set(build.report):
            return "it reports on attributes that were not requested"
    if reply.stopped or reply.parts:
        return "it reports on parts of a file, which only loading it runs"
    if call.watch != (reply.operations is not None):
        return "it reports on operations that were not watched"
    if reply.gradients and call.cotangent is None:
        return "it gives gradients that were not requested"
    return "" if all(_is_argument(call, name) for name in reply.mutated) else "it names arguments that were not given"


def _is_of_form(output: Output, form: Form) -> bool:
    """Whether the output can stand at this leaf: an opaque one says nothing, and a misfit has no numbers."""
    is_opaque, is_misfit = output.kind == OPAQUE, read_misfit(output.kind) is not None
    if is_opaque or is_misfit:
        return (is_misfit or form.kind == "opaque") and output == Output(output.kind)
    return form.kind != "opaque"


def as_the_text_says(reply: Reply, source: str) -> Reply:
    """Return the reply, in which a NotImplementedError says whether the function that raises it has something in it."""
    raised = reply.raised
    if raised is None or raised.type != "NotImplementedError" or not raised.line:
        return reply
    return replace(reply, raised=replace(raised, in_written=is_beside_code(source, raised.line)))


def _is_argument(call: Call, name: str) -> bool:
    """Whether it is one of the names that the worker gives to what the call can change: "args.0", "kwargs.x", and of a
    module "args.0.proj.weight". Evidence repeats the name, so it must not be the attempt's choice."""
    given = call.arguments
    if name in given:
        return True
    modules = {whole: value for whole, value in given.items() if isinstance(value, StandIn)}
    return any(name == f"{whole}.{layer}.weight" for whole, module in modules.items() for layer in module.linears)
