"""The general requirements of functions and modules: gradients, dtype, device and others.

`function_contract` and `module_contract` turn them into checks, which a file of checks lists under
the name CONTRACT. The requirements of functions are defined here. Those of modules are methods of
the object that describes the module, because they depend on its parameters and its constructor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..box.worker.messages import DeviceArgument, StandIn
from .answer import Answer
from .asserts import agrees, assert_shape, assert_tensor, assert_unmutated, expect
from .hidden_check import CheckFailed, Draw, Evidence, Mark, check
from .module_expectations import expect_gradients, is_cut_in_part
from .runner import Implementation

CONTRACT = "CONTRACT"  # the name of the list in a file of checks
# draw -> for each function of the exercise, its arguments by name
Arguments = Callable[[Draw], Mapping[str, Mapping[str, Any]]]
Words = str | tuple[str, str]
DTYPES = ("float32", "float64")
SAME_DEVICE = re.compile("same device|expected device")  # in PyTorch's message
TWO_DEVICES = re.compile(r"same device|expected device|cross-device|CUDA|NVIDIA")


def function_contract(
    arguments: Arguments, points: float = 0.25, **requirements: Words
) -> list[Callable[..., None]]:
    """Return a check for each general requirement of the functions of an exercise.

    A file of checks has them where it assigns the list to `CONTRACT`. The requirements are:

    gradients: the right gradients reach every argument.
    leaves_its_arguments: no argument is changed in place.
    dtype: float32 in gives float32 out, and float64 gives float64.
    device: the answer is on the device of the arguments, and is computed there.
    stays_on_the_device: the same, for functions that need not make tensors; its id is "device".

    Example: `CONTRACT = function_contract(arguments, gradients="", dtype="Name no dtype.")`

    Args:
        arguments: given `draw`, returns the arguments of each function by name:
            `{"split_heads": {"x": draw(2, 3, 8), "n_head": 4}}`.
        points: of each check.
        requirements: the requirements, each with its hint, or with the sentence that the student
            reads and the hint; "" leaves both as they are. Without any requirement, the list has
            the first four.
    """
    words = requirements or dict.fromkeys(list(REQUIREMENTS)[:4], "")
    checks = []
    for name, word in words.items():
        title, hint = ("", word) if isinstance(word, str) else word
        checks.append(_check_of(REQUIREMENTS[name], arguments, points, title, hint))
    return checks


def module_contract(module: object, **requirements: Words) -> list[Callable[..., None]]:
    """Return a check for each general requirement of a module.

    A requirement is a method of the object that describes the module. `check` marks it, and it is
    called with `attempt`, `reference` and `draw`:

        class Norm:
            @check(points=0.25, layer="hygiene", hint="Which device is x on?")
            def moves(self, attempt, reference, draw):
                \"\"\"works where .to(device) has put it\"\"\"

    Example: `CONTRACT = module_contract(Norm(), moves="Register a buffer.")`

    Args:
        module: the object that describes the module.
        requirements: by the names of methods, in the order of the checks: a hint, or a pair of the
            sentence that the student reads and a hint. An empty sentence stands for the docstring
            of the method, and an empty hint for the hint of its `check`. In a pair, an empty hint
            means no hint.
    """
    checks = []
    for name, word in requirements.items():
        method = getattr(module, name)
        mark: Mark = method.pytestmark[0].args[0]
        title, hint = ("", word or mark.hint) if isinstance(word, str) else word
        mark_of_check = vars(replace(mark, hint=hint))
        checks.append(_as_check(method, name, title or method.__doc__, **mark_of_check))
    return checks


def _as_check(
    requirement: Callable[..., None], name: str, title: str, **mark: Any
) -> Callable[..., None]:
    """Return a function or method as a check with this name and sentence.

    Args:
        requirement: takes the attempt, the reference and `draw`.
        name: the id of the check.
        title: the sentence that the student reads.
        **mark: the arguments of `check`.
    """

    def judge(attempt: Implementation, reference: Implementation, draw: Draw) -> None:
        requirement(attempt, reference, draw)

    judge.__name__ = f"test_{name}"
    judge.__doc__ = title
    marked: Callable[..., None] = check(**mark)(judge)
    return marked


@dataclass(frozen=True)
class Case:
    """A function with its arguments, and the fixtures with which a requirement tests it."""

    name: str
    arguments: Mapping[str, Any]
    attempt: Implementation
    reference: Implementation
    draw: Draw

    @property
    def values(self) -> list[Any]:
        """The arguments by position."""
        return [*self.arguments.values()]


@dataclass(frozen=True)
class Requirement:
    """A general requirement of functions."""

    id: str  # of the check
    layer: str
    title: str  # the sentence that the student reads
    # raises CheckFailed; gets the name and the arguments of one function after the other
    judge: Callable[[Case], None]


def _check_of(
    requirement: Requirement, arguments: Arguments, points: float, title: str, hint: str
) -> Callable[..., None]:
    """Return a check that judges a requirement for one function after the other."""

    def judge(attempt: Implementation, reference: Implementation, draw: Draw) -> None:
        for name, named_arguments in arguments(draw).items():
            requirement.judge(Case(name, named_arguments, attempt, reference, draw))

    mark = {"points": points, "hint": hint, "layer": requirement.layer}
    return _as_check(judge, requirement.id, title or requirement.title, **mark)


def _lets_gradients_through(case: Case) -> None:
    """Fail unless the gradients of the floating-point arguments are the reference's.

    These arguments must be the first ones of the function.
    """
    name, args, attempt = case.name, case.values, case.attempt
    floating = [
        argument
        for argument, value in case.arguments.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    ]
    cotangent = case.draw(*case.reference.call(name, *args).shape)
    got, want = (
        implementation.with_options(cotangent=cotangent).call(name, *args)
        for implementation in (attempt, case.reference)
    )
    assert_shape(got, cotangent.shape, Evidence("the output of {}", name))
    for i, argument in enumerate(floating):  # the first arguments
        if got.gradient(f"args.{i}") is None:
            edited = args[i].roll(1, -1) + case.draw(*args[i].shape)
            moved = attempt.call(name, *args[:i], edited, *args[i + 1 :]).output
            is_cut = bool(moved.isfinite().all()) and not agrees(moved, got)
            depends = ", though the output depends on it" if is_cut else ""
            suspect = "gradient_cut" if is_cut else ""
            evidence = Evidence("{}: no gradient reaches {}{}", name, argument, depends)
            raise CheckFailed(evidence, suspect)
    names = [f"args.{i}" for i in range(len(floating))]
    expect_gradients(got, want, names, lambda: is_cut_in_part(attempt, got, want, cotangent))


def _leaves_its_arguments(case: Case) -> None:
    assert_unmutated(case.attempt.call(case.name, *case.values), suspect="input_mutated")


def _keeps_the_dtype(case: Case) -> None:
    """Fail unless the attempt works in both dtypes, and returns a tensor in the same dtype.

    If the function returns several parts, only the first one is examined.
    """
    answers = {
        dtype: case.attempt.with_options(dtype=dtype).call(case.name, *case.values)
        for dtype in DTYPES
    }
    works = [dtype for dtype, answer in answers.items() if answer.raised is None]
    if not works:
        answers["float64"].must_return()
    all_work = len(works) == len(DTYPES)
    evidence = Evidence("{} works in {} only", case.name, works[0])
    expect(all_work, evidence, "hard_coded_dtype")
    for dtype, answer in answers.items():
        leaf = next(answer.leaves())
        if leaf.kind == "tensor":
            evidence = Evidence(
                "{}: {} in should give {} out; yours gives {}", case.name, dtype, dtype, leaf.dtype
            )
            expect(leaf.dtype == dtype, evidence, "hard_coded_dtype")


def _works_on_the_device(case: Case) -> None:
    """Fail if the attempt mixes devices, or does not return meta tensors for meta tensors.

    If it raises for another reason on the meta device, it must answer on its own device.
    """
    name, args, attempt = case.name, case.values, case.attempt
    has_tensor = any(isinstance(value, Tensor) for value in args)
    # without a tensor among the arguments, device= gives the device
    on_meta, at_home = (
        {} if has_tensor else {"device": DeviceArgument(device)}
        for device in ("meta", attempt.device)
    )
    answer = attempt.with_options(watch=True).call(name, *map(_to_meta, args), **on_meta)
    operations = answer.reply.operations
    # some operations accept tensors on two devices without raising
    mixed = TWO_DEVICES.search(answer.message) or (operations and operations.mixed)
    evidence = Evidence(
        "{}: tensors on two devices meet; one of them was made on a fixed device, or taken to one",
        name,
    )
    expect(not mixed, evidence, "hard_coded_device")
    if answer.raised is not None:
        # tensors on meta have no numbers, so an attempt that looks at numbers may raise
        attempt.call(name, *args, **at_home).must_return()
        return
    device = answer.device or "meta"
    wherever = "the arguments are" if has_tensor else "it is asked for"
    evidence = Evidence("{}: the output is on {} wherever {}", name, device, wherever)
    expect(device == "meta", evidence, "hard_coded_device")


def _stays_on_the_device(case: Case) -> None:
    """Fail if the attempt mixes devices, or returns a tensor on another one than its arguments.

    If it raises for another reason on the meta device, only its own device counts.
    """
    name, args, attempt = case.name, case.values, case.attempt
    at_home = attempt.call(name, *args)
    on_meta = attempt.with_options(watch=True).call(name, *map(_to_meta, args))
    _expect_device(name, at_home, attempt.device)
    if on_meta.raised is None:
        _expect_device(name, on_meta, "meta")
    operations = on_meta.reply.operations
    mixed = SAME_DEVICE.search(on_meta.message) or (operations and operations.mixed)
    evidence = Evidence(
        "{}: something stays on another device than its arguments: a tensor made without device=,"
        " perhaps",
        name,
    )
    expect(not mixed, evidence, "hard_coded_device")


def _expect_device(name: str, answer: Answer, device: str) -> None:
    leaf = next(answer.leaves())
    assert_tensor(leaf)
    evidence = Evidence(
        "{} gives a tensor on {}, whatever the device of its arguments", name, leaf.device
    )
    expect(leaf.device == device, evidence, "hard_coded_device")


def _to_meta(value: object) -> object:
    """Return a tensor on the meta device, a StandIn with its weights there, or the same value."""
    if isinstance(value, StandIn):
        linears = {name: weight.to("meta") for name, weight in value.linears.items()}
        return replace(value, linears=linears)
    return value.to("meta") if isinstance(value, Tensor) else value


REQUIREMENTS = {
    "gradients": Requirement(
        "gradients",
        "gradients",
        "lets the right gradients through to every argument",
        _lets_gradients_through,
    ),
    "leaves_its_arguments": Requirement(
        "leaves_its_arguments",
        "hygiene",
        "leaves its arguments as they were",
        _leaves_its_arguments,
    ),
    "dtype": Requirement(
        "dtype", "hygiene", "answers in the dtype that it was given", _keeps_the_dtype
    ),
    "device": Requirement(
        "device", "hygiene", "works on the device of its arguments", _works_on_the_device
    ),
    "stays_on_the_device": Requirement(
        "device", "hygiene", "stays on the device of its arguments", _stays_on_the_device
    ),
}
