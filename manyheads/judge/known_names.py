"""The names of a module's parts that a report may repeat: those that no hidden input can have
chosen.

An attempt names its parameters as it runs. By then it may have met hidden inputs, in this call or
in an earlier one, and could spell their digits as names; or pick words from its own text, which say
as much by which of them there are. So a reply to a hidden call keeps its names in three cases only:

1. the check's own call has the name, because it loads a weight by it;
2. the reference has the name, if it is built with the same arguments;
3. the attempt has exactly these names in a process that has met no call but this one, and this one
gives it no tensors.

Any other name is replaced by ANOTHER and its number, so that a check still sees how many there
are. Example: of `temperature` and `proj.weight` both pass; `n314159265`, made of an input, becomes
"another name 1".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call, StandIn

ANOTHER = "another name"


def builds_in(call: Call) -> list[Build]:
    """Return the modules that the call builds, in the order in which the reply reports on them."""
    return [value for value in call.inputs if isinstance(value, Build)]


def names_in(reply: Reply) -> frozenset[str]:
    """Return the names of parameters, and of what has a gradient."""
    return frozenset(reply.gradients).union(*(facts.parameters for facts in reply.modules))


def names_given(call: Call) -> frozenset[str]:
    """Return the names that the call itself has: of its arguments, and of the weights that it
    loads.
    """
    arguments = changeable_arguments(call)
    states = (build.state or () for build in builds_in(call))
    return frozenset(arguments | {f"second.{name}" for name in arguments}).union(*states)


def changeable_arguments(call: Call) -> set[str]:
    """Return the worker's names of what a call can change: "args.0", and of a module
    "args.0.proj.weight".
    """
    modules = [
        (name, value) for name, value in call.arguments.items() if isinstance(value, StandIn)
    ]
    return {
        *call.arguments,
        *(f"{name}.{layer}.weight" for name, module in modules for layer in module.linears),
    }


def without_tensors(call: Call) -> Call | None:
    """Return a call that builds the same module and gives it no tensors; None if the call does more
    than build one.
    """
    build = call.subject
    if not isinstance(build, Build) or not call.only_build or call.arguments:
        return None
    arguments = (*build.args, *build.kwargs.values(), *build.attributes.values())
    if not all(isinstance(value, bool | int | float | str | None) for value in arguments):
        return None
    return Call(
        replace(build, state=None, report=()), only_build=True, dtype=call.dtype, device=call.device
    )


def with_known_names(reply: Reply, allowed_names: Collection[str]) -> Reply:
    """Return the reply with ANOTHER and a number in place of each name that is not known."""
    strangers = sorted(names_in(reply).difference(allowed_names))
    replacements = {name: f"{ANOTHER} {number}" for number, name in enumerate(strangers, 1)}
    modules = []
    for facts in reply.modules:
        parameters = {
            replacements.get(name, name): entry for name, entry in facts.parameters.items()
        }
        modules.append(replace(facts, parameters=parameters))
    gradients = {
        replacements.get(name, name): gradient for name, gradient in reply.gradients.items()
    }
    return replace(reply, modules=tuple(modules), gradients=gradients)
