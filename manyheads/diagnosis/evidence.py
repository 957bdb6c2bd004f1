"""Evidence from single replies: exceptions, parameters, answers, and guards on valid inputs.

A guard is a test of the arguments' sizes that raises. Code after a guard does not run, so no
mutant's answers explain the refusal; the test in the guard's text is read instead.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import chain, islice
from typing import TypeVar

from ..box.worker.messages import Raised, Reply
from ..checks.explain_exceptions import is_dtype_fault, is_refusal, kind_of
from ..checks.runner import target_of
from ..submission.source import UNTOUCHED, Source
from .fault_dictionary import FaultDictionary, RecordedMutant, Response
from .fingerprint import ReplyFingerprint
from .observed_reply import ObservedReply, device_misconception

MUTATED, ROUNDED = "input_mutated", "output_rounded"
MAX_DECIMALS = 4  # a number with more decimals does not count as rounded
MIN_NUMBERS = 12  # fewer numbers may all have few decimals by chance
ROUNDING = 1e-6  # the relative rounding error of a number in float32
UNREGISTERED = "params_not_registered"


def misconception_of_exception(raised: Raised | None, mutates: bool) -> str:
    """Return the misconception that an exception proves by itself, or "".

    Args:
        raised: the exception, or None.
        mutates: whether an argument was seen to change. If not, autograd's error about a change in
            place is due to another tensor, and proves nothing about arguments.
    """
    error_kind = None if raised is None else kind_of(raised)
    if error_kind is None or error_kind.misconception is None:
        return ""
    name = error_kind.misconception
    return "" if name == MUTATED and not mutates else name


def misconceptions_of_exceptions(
    observations: Mapping[int, ObservedReply], mutates: bool
) -> dict[int, str]:
    """Return the misconception that an exception proves, by call that the reference accepts.

    Args:
        observations: the replies, by call.
        mutates: as for `misconception_of_exception`.
    """
    names = dict[int, str]()
    for i, observation in observations.items():
        name = misconception_of_exception(observation.reply.raised, mutates)
        if name and observation.is_allowed:
            names[i] = name
    return names


def misconception_of_answer(
    recording: FaultDictionary, index: int, observation: ObservedReply
) -> str:
    """Return the id of the misconception that an answer proves by itself, or "".

    The first kind of evidence that the answer has decides, even if it names no misconception:

    1. a changed argument;
    2. a missing refusal;
    3. a module with other attributes;
    4. a module with parameters of other shapes;
    5. a tensor on another device.

    Each kind counts only if a visible check compares it on this call; a changed argument counts if
    one compares it on any call. For kinds 2 to 4, all mutants that reply in this way must have one
    misconception. The misconception must be in this exercise's bank.
    """
    oracles, name = recording.oracles_by_call[index], ""
    actual, expected = observation.actual, observation.expected
    if (
        observation.reply.mutated
        and not expected.mutated
        and any("mutated" in names for names in recording.oracles_by_call)
    ):
        name = MUTATED
    elif "refused" in oracles and _is_no_refusal(expected, actual):
        name = _shared_name(recording, index, recording.mutants, _is_no_refusal)
    elif (
        "attributes" in oracles
        and actual.raised is None
        and actual.attributes != expected.attributes
    ):
        name = _shown_by_attributes(recording, index, actual)
    elif "parameters" in oracles and _has_other_sizes(expected, actual):
        name = _shared_name(recording, index, recording.mutants, _has_other_sizes)
    elif "device" in oracles:
        name = device_misconception(observation)
    return name if name in recording.ids else ""


def are_rounded(replies: Iterable[Reply]) -> bool:
    """Return whether all numbers of these answers have at most MAX_DECIMALS decimals.

    Only finite numbers that are not whole are evidence. Return False if fewer than
    MIN_NUMBERS numbers are evidence. Outputs on the meta device have no numbers.
    """
    count, unit = 0, 10**MAX_DECIMALS
    for output in chain.from_iterable(reply.outputs for reply in replies):
        if output.tensor is None or output.tensor.is_meta:
            continue
        tensor = output.tensor.double()
        numbers = tensor[tensor.isfinite() & (tensor != tensor.round())] * unit
        if not ((numbers - numbers.round()).abs() < unit * ROUNDING).all():
            return False
        count += len(numbers)
    return count >= MIN_NUMBERS


def _shown_by_attributes(recording: FaultDictionary, index: int, actual: ReplyFingerprint) -> str:
    """Return the misconception of all mutants that have these attributes in a call.

    A mutant counts only if it replies as the reference does in all calls of other functions. Return
    "" if no mutant counts, or if those that count have several misconceptions.
    """
    target = target_of(recording.calls[index])
    elsewhere = [i for i in recording.compared_fields if target_of(recording.calls[i]) != target]
    mutants = [m for m in recording.mutants if _has_reference_answers(m, elsewhere)]

    def has_these_attributes(_: ReplyFingerprint, answer: ReplyFingerprint) -> bool:
        return answer.raised is None and answer.attributes == actual.attributes

    return _shared_name(recording, index, mutants, has_these_attributes)


def _has_reference_answers(mutant: RecordedMutant, calls: Iterable[int]) -> bool:
    return all(mutant.answers[i] == 0 for i in calls)  # 0 is the index of the reference's reply


def _has_other_sizes(expected: ReplyFingerprint, reply: ReplyFingerprint) -> bool:
    """Return whether a reply's module has the expected parameters, some with other shapes."""
    expected_shapes, actual_shapes = expected.parameters, reply.parameters
    return (
        reply.raised is None
        and actual_shapes.keys() == expected_shapes.keys()
        and actual_shapes != expected_shapes
    )


def _is_no_refusal(expected: ReplyFingerprint, reply: ReplyFingerprint) -> bool:
    """Return whether the reference refuses a call, and the reply is no exception of any kind."""
    return expected.raised == "refused" and reply.raised is None


def _shared_name(
    recording: FaultDictionary,
    index: int,
    mutants: Sequence[RecordedMutant],
    is_evidence: Callable[[ReplyFingerprint, ReplyFingerprint], bool],
) -> str:
    """Return the misconception of all mutants that reply to a call in a certain way.

    Return "" if they have several misconceptions, or if there are no such mutants. A mutant with a
    random reply does not count.

    Args:
        recording: the fault dictionary.
        index: the call.
        mutants: the mutants that take part.
        is_evidence: takes the reference's reply and a mutant's, and returns whether the mutant
            replies in this way.
    """
    expected, names = recording.expected_reply(index), set[str]()
    for mutant in mutants:
        answer = recording.answer(mutant, index)
        if answer is not None and is_evidence(expected, answer):
            names.add(mutant.id)
    return names.pop() if len(names) == 1 else ""


Failure = TypeVar("Failure")  # a check or a call that fails


def can_cause(
    names: Collection[str],
    unexplained: Collection[Failure],
    failures: Set[Failure],
    reached_by: Callable[[], Mapping[str, Sequence[Set[Failure]]]],
) -> bool:
    """Return whether these misconceptions can be the cause of all unexplained failures.

    A mutant of these misconceptions counts if it has no failure that the attempt does not have. The
    mutants that count must together have all unexplained failures. Return True also without
    misconceptions or without unexplained failures.

    Args:
        names: ids of proven misconceptions.
        unexplained: failures of the attempt for which there is no candidate.
        failures: all failures of the attempt.
        reached_by: returns for each misconception the failures of each of its mutants, or an empty
            mapping if they are not known: then the result is True. Called only if it is needed.
    """
    if not names or not unexplained:
        return True
    failures_by_name = reached_by()
    reached = set[Failure]()
    for name in names:
        for mutant_failures in failures_by_name.get(name, ()):
            if mutant_failures <= failures:
                reached |= mutant_failures
    return not failures_by_name or reached.issuperset(unexplained)


def misconceptions_of_parameters(response: Response) -> dict[int, str]:
    """Return the misconception that other parameters prove, by call with other parameters.

    Only the names of parameters are compared, in the calls to which a visible check applies the
    oracle "parameters".

    1. The misconception is the one of all mutants with the attempt's parameters in all these calls.
       A mutant counts only if it answers all these calls, and none at random. An untouched stub
       does not count.
    2. The misconception is UNREGISTERED instead if some mutant has this misconception, if
       parameters are missing in each call and none is extra, and if two dtypes meet in some
       exception.

    Return none if no parameters differ, or if the attempt does not answer one of these calls.
    Return none also if no mutant counts, or if those that count have several misconceptions.
    """
    recording, observations = response.recording, response.written
    calls = [i for i, oracles in enumerate(recording.oracles_by_call) if "parameters" in oracles]
    if any(i not in observations or observations[i].actual.raised for i in calls):
        return {}
    actual = {i: observations[i].actual.parameters.keys() for i in calls}
    expected = {i: recording.expected_reply(i).parameters.keys() for i in calls}
    wrong_calls = [i for i in calls if actual[i] != expected[i]]
    if not wrong_calls:
        return {}
    names = set[str]()
    for m in response.mutants:
        replies = recording.answers(m, calls)  # without random ones
        if len(replies) == len(calls) and all(
            not reply.raised and reply.parameters.keys() == actual[i]
            for i, reply in replies.items()
        ):
            names.add(response.id(m))
    names.discard(UNTOUCHED)  # an attempt that answers is not an untouched stub
    are_fewer = all(actual[i] < expected[i] for i in calls)
    if are_fewer and UNREGISTERED in recording.ids:
        # `.to` does not reach parameters that are not registered: two dtypes meet
        raised = (observation.reply.raised for observation in observations.values())
        if any(exception and is_dtype_fault(exception) for exception in raised):
            names = {UNREGISTERED}
    return dict.fromkeys(wrong_calls, names.pop()) if len(names) == 1 else {}


def without_extra_parameters(
    observations: Mapping[int, ObservedReply],
) -> dict[int, ObservedReply]:
    """Return the replies without extra parameters and their gradients, by call.

    Calls set extra parameters to zero, so the values show what else is wrong. Return no replies at
    all if a parameter is missing in some reply.
    """
    reduced = dict[int, ObservedReply]()
    for i, observation in observations.items():
        actual, expected = observation.actual, observation.expected
        if expected.parameters.keys() - actual.parameters:
            return {}
        gradients = {n: g for n, g in actual.gradients.items() if n in expected.gradients}
        parameters = {name: actual.parameters[name] for name in expected.parameters}
        actual = replace(actual, gradients=gradients, parameters=parameters)
        reduced[i] = replace(observation, actual=actual)
    return reduced


REFUSES = "refuses_allowed"
# a guard that tests the divisibility of the wrong width also refuses allowed inputs
UNDIVIDED = "divisibility_unchecked"
_LIMITS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_METHODS = ("__init__", "forward")
# Methods that return a size, or whether a size is whole; functions that combine sizes
_SIZE_METHODS = ("size", "dim", "numel", "is_integer")
_SIZE_FUNCTIONS = ("len", "int", "min", "max", "abs", "divmod", "isinstance")


class _Origin(IntEnum):
    """The values that a value depends on. An expression has the highest origin of its parts."""

    ARGUMENTS = 0  # arguments, their sizes and constants
    COMPUTED_SIZES = 1  # also sizes of computed values
    OTHER = 2  # also other values, or unknown ones


# The most lines that are searched for guards: hundreds of calls may raise, each in another line.
MAX_LINES = 16
# Expressions whose value depends on their parts alone. A constant has no parts.
_COMBINATIONS = (
    ast.Constant,
    ast.Subscript,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Slice,
    ast.Starred,
)


@dataclass(frozen=True)
class Guard:
    """A guard that raised.

    Attributes:
        divides: whether it refuses a size that another size does not divide.
        inverted: whether it refuses a size that another size divides.
    """

    divides: bool
    inverted: bool = False


def guards_of(source: Source, raised: Mapping[int, tuple[str, Raised]]) -> dict[int, Guard]:
    """Return the guard that refused a call, for each of these calls that a guard refused.

    A function may be refused by a guard of a function that it calls. So a guard counts for all
    calls that raise on its line. At most MAX_LINES lines are searched.

    Args:
        source: the attempt's text.
        raised: for calls with allowed arguments the function or class, and the exception.
    """
    # hundreds of calls may raise in one line, which is searched once
    lines = {(target, exception.line): exception for target, exception in raised.values()}
    guards = dict[int | None, Guard]()
    for (target, line), exception in islice(lines.items(), MAX_LINES):
        guard = guard_of(source, target, exception)
        if guard is not None:
            guards[line] = guard
    return {
        i: guards[exception.line]
        for i, (_, exception) in raised.items()
        if exception.line in guards and is_refusal(exception)
    }


def guard_of(source: Source, target: str, raised: Raised) -> Guard | None:
    """Return the guard of this function or class that raised, or None if something else raised.

    The exception must be a refusal, and each condition of its line may depend only on the arguments
    and on sizes (`_Origins.depends_on_sizes`). Guards of helper functions do not count, because
    their arguments may be computed values.
    """
    if not raised.line or not is_refusal(raised):
        return None
    for function in _functions(source, target):
        tests = _tests(function.body, raised.line)
        if tests and all(map(_Origins(function, raised.line).depends_on_sizes, tests)):
            inverted = any(map(_is_true_without_remainder, tests))
            nodes = chain.from_iterable(map(ast.walk, tests))
            divides = any(
                isinstance(node, ast.Mod | ast.FloorDiv) or getattr(node, "id", "") == "divmod"
                for node in nodes
            )
            return Guard(divides and not inverted, inverted)
    return None


def _functions(source: Source, target: str) -> Iterator[ast.FunctionDef]:
    """Yield the function, or the constructor and `forward` of the class and its base classes.

    Only definitions at the top level of the attempt's file count.
    """
    class_names = {target}
    # From the end, because a base class stands above the class that names it
    for statement in reversed(source.statements):
        if isinstance(statement, ast.FunctionDef) and statement.name == target:
            yield statement
        elif isinstance(statement, ast.ClassDef) and statement.name in class_names:
            class_names |= {base.id for base in statement.bases if isinstance(base, ast.Name)}
            for method in statement.body:
                if isinstance(method, ast.FunctionDef) and method.name in _METHODS:
                    yield method


def _tests(body: Sequence[ast.stmt], line: int) -> list[ast.expr]:
    """Return the conditions under which the `raise` or `assert` on this line raises.

    There are several if one `if` is in another. Return none if the statement has no condition, or
    if it stands in a block other than an `if`, such as a loop.
    """
    for statement in body:
        if not _has_line(statement, line):
            continue
        if isinstance(statement, ast.Assert):
            return [ast.UnaryOp(ast.Not(), statement.test)]
        if isinstance(statement, ast.If):
            otherwise = ast.UnaryOp(ast.Not(), statement.test)
            for branch, test in ((statement.body, statement.test), (statement.orelse, otherwise)):
                if any(isinstance(node, ast.Raise) and _has_line(node, line) for node in branch):
                    return [test]
                if inner_tests := _tests(branch, line):
                    return [test, *inner_tests]
    return []


def _has_line(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or 0)


def _is_true_without_remainder(test: ast.expr) -> bool:
    """Return whether a test has the form `C % n == 0` or `not C % n`."""
    match test:
        case ast.Compare(
            left=ast.BinOp(op=ast.Mod()), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]
        ):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod())):
            return True
    return False


class _Origins:
    """The origin of the value of each name in a function, before a line."""

    def __init__(self, function: ast.FunctionDef, line: int) -> None:
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        self._names = {argument.arg: _Origin.ARGUMENTS for argument in arguments}
        nodes = ast.walk(function)
        assignments = (n for n in nodes if isinstance(n, _ASSIGNMENTS) and n.lineno < line)
        for node in sorted(assignments, key=lambda node: node.lineno):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            origin = _Origin.OTHER if node.value is None else self._of_value(node.value)
            self._set_origin(targets, origin)

    def depends_on_sizes(self, test: ast.expr) -> bool:
        """Return whether this test depends on arguments and their sizes alone.

        If all its comparisons are <, ≤, > or ≥, it may also depend on sizes of computed values,
        such as the number of all keys. A test that computed sizes are equal is no guard: it looks
        for a mistake in the code itself.
        """
        comparisons = (node for node in ast.walk(test) if isinstance(node, ast.Compare))
        operators = [*chain.from_iterable(node.ops for node in comparisons)]
        has_limits = bool(operators) and all(isinstance(op, _LIMITS) for op in operators)
        return self._of_value(test) <= (_Origin.COMPUTED_SIZES if has_limits else _Origin.ARGUMENTS)

    def _of_value(self, node: ast.expr) -> _Origin:
        """Return the origin of an expression's value, and note the names that it assigns with `:=`.

        Names and expressions that are not known are OTHER. Each node is visited once, because a
        student decides how deep the text is nested.
        """
        match node:
            case ast.Name():
                return self._names.get(node.id, _Origin.OTHER)
            case ast.Attribute(attr="shape"):
                return self._of_size(node.value)
            case ast.Attribute():
                return self._of_value(node.value)
            case ast.Call():
                return max([self._of_function(node.func), *map(self._of_value, node.args)])
            case ast.NamedExpr():
                origin = self._of_value(node.value)
                self._set_origin([node.target], origin)
                return origin
        if isinstance(node, _COMBINATIONS):
            children = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
            return max(map(self._of_value, children), default=_Origin.ARGUMENTS)
        return _Origin.OTHER

    def _of_function(self, function: ast.expr) -> _Origin:
        """Return the part of the origin of a call's result that the called function decides.

        For a method such as `x.size`, it is the origin of a size of `x`; for a function such as
        `len`, ARGUMENTS; for any other, OTHER. The caller combines it with those of the arguments.
        """
        if isinstance(function, ast.Attribute) and function.attr in _SIZE_METHODS:
            return self._of_size(function.value)
        is_of_sizes = isinstance(function, ast.Name) and function.id in _SIZE_FUNCTIONS
        return _Origin.ARGUMENTS if is_of_sizes else _Origin.OTHER

    def _of_size(self, node: ast.expr) -> _Origin:
        """Return the origin of the size of an expression's value: COMPUTED_SIZES at most."""
        return min(self._of_value(node), _Origin.COMPUTED_SIZES)

    def _set_origin(self, targets: Iterable[ast.expr], origin: _Origin) -> None:
        """Set the origin of all names in the targets of an assignment, except self."""
        for node in chain.from_iterable(map(ast.walk, targets)):
            if isinstance(node, ast.Name) and node.id != "self":
                self._names[node.id] = origin
