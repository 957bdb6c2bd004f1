"""Evidence from single replies: exceptions, parameters, answers, and guards on valid inputs.

The evidence also limits which other findings it can cause. A guard compares sizes of its arguments.
Code after a guard does not run, so no mutant's answers explain the refusal; the comparison in the
guard is read instead.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeVar

from ..box.worker.messages import Raised, Reply
from ..checks.explain import is_dtype_fault, is_refusal, kind_of
from ..checks.runner import target_of
from ..submission.source import UNTOUCHED, Source
from .fault_dictionary import FaultDictionary, RecordedMutant, Response
from .fingerprint import ReplyFingerprint
from .observed_reply import ObservedReply, fault_of_device

MUTATED, ROUNDED = "input_mutated", "output_rounded"
MAX_DECIMALS = 4  # a number with more decimals does not count as rounded
MIN_NUMBERS = 12  # so many numbers must be rounded
ROUNDING = 1e-6  # the relative rounding error of a number in float32
UNREGISTERED = "params_not_registered"
# the names of extra parameters, and those of missing parameters
Names = tuple[set[str], set[str]]


def proven_by(raised: Raised | None, mutates: bool) -> str:
    """Return the misconception that an exception proves by itself, or "".

    Args:
        raised: the exception.
        mutates: whether an argument was seen to change. If not, autograd's error about a change in
            place is due to another tensor, and proves nothing about arguments.
    """
    error_kind = kind_of(raised) if raised is not None else None
    name = (error_kind.misconception if error_kind else None) or ""
    return "" if name == MUTATED and not mutates else name


def proven_by_exceptions(
    observations: Mapping[int, ObservedReply], mutates: bool
) -> dict[int, str]:
    """Return the calls with an exception that proves a misconception, mapped to it."""
    return {
        i: name
        for i, e in observations.items()
        if e.is_allowed and (name := proven_by(e.reply.raised, mutates))
    }


def proven_by_answer(recording: FaultDictionary, index: int, observation: ObservedReply) -> str:
    """Return the id of the misconception that an answer proves by itself, or "".

    The evidence is a changed argument, a tensor on another device, a missing refusal, a module with
    the attributes of a mutant, or layers of other sizes. For a refusal, attributes and sizes, all
    mutants that reply in this way must have one misconception.

    Uses only the oracles that visible checks apply to this call (for a changed argument: to any
    call), and only misconceptions in this exercise's bank.
    """
    oracles, name = recording.aspects[index], ""
    actual, expected = observation.actual, observation.expected
    if (
        observation.reply.mutated
        and not expected.mutated
        and any("mutated" in aspects for aspects in recording.aspects)
    ):
        name = MUTATED
    elif "refused" in oracles and _is_no_refusal(expected, actual):
        name = _name_of_all(recording, index, recording.mutants, _is_no_refusal)
    elif (
        "attributes" in oracles
        and actual.raised is None
        and actual.attributes != expected.attributes
    ):
        name = _of_the_same_attributes(recording, index, actual)
    elif "parameters" in oracles and _has_other_sizes(expected, actual):
        name = _name_of_all(recording, index, recording.mutants, _has_other_sizes)
    elif "device" in oracles:
        name = fault_of_device(observation)
    return name if name in recording.ids else ""


def are_rounded(replies: Iterable[Reply]) -> bool:
    """Return whether all numbers of these answers have few decimals.

    Whole numbers are left out, because they are no evidence.
    """
    count, tensors = 0, (out.tensor for reply in replies for out in reply.outputs)
    for tensor in (
        output.double() for output in tensors if output is not None and not output.is_meta
    ):
        numbers = tensor[tensor.isfinite() & (tensor != tensor.round())] * 10**MAX_DECIMALS
        if not ((numbers - numbers.round()).abs() < 10**MAX_DECIMALS * ROUNDING).all():
            return False
        count += len(numbers)
    return count >= MIN_NUMBERS


def _of_the_same_attributes(
    recording: FaultDictionary, index: int, actual: ReplyFingerprint
) -> str:
    """Return the misconception of all mutants with these attributes that no other function detects.

    Return "" if they have several misconceptions.
    """
    target = target_of(recording.calls[index])
    elsewhere = [i for i in recording.facets if target_of(recording.calls[i]) != target]
    mutants = [m for m in recording.mutants if _has_reference_answers(m, elsewhere)]
    return _name_of_all(
        recording,
        index,
        mutants,
        lambda _, answer: answer.raised is None and answer.attributes == actual.attributes,
    )


def _has_reference_answers(mutant: RecordedMutant, calls: Iterable[int]) -> bool:
    return all(mutant.answers[i] == 0 for i in calls)


def _has_other_sizes(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> bool:
    expected_shapes, actual_shapes = expected.parameters, fingerprint.parameters
    return (
        fingerprint.raised is None
        and actual_shapes.keys() == expected_shapes.keys()
        and actual_shapes != expected_shapes
    )


def _is_no_refusal(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> bool:
    return expected.raised == "refused" and fingerprint.raised is None


def _name_of_all(
    recording: FaultDictionary,
    index: int,
    mutants: Sequence[RecordedMutant],
    answers_so: Callable[[ReplyFingerprint, ReplyFingerprint], bool],
) -> str:
    """Return the misconception of all mutants that reply to a call in this way.

    Return "" if they have several misconceptions, or if there are no such mutants.

    Args:
        recording: the fault dictionary.
        index: the call.
        mutants: the mutants to look at.
        answers_so: takes the reference's reply and a mutant's, and returns whether it counts.
    """
    expected = recording.expected_reply(index)
    answers = ((mutant.id, recording.answer(mutant, index)) for mutant in mutants)
    names = {id_ for id_, answer in answers if answer is not None and answers_so(expected, answer)}
    return names.pop() if len(names) == 1 else ""


Failure = TypeVar("Failure")  # a check or a call that fails


def can_cause(
    names: Collection[str],
    unexplained: Collection[Failure],
    failures: Set[Failure],
    reached_by: Callable[[], Mapping[str, Sequence[Set[Failure]]]],
) -> bool:
    """Return whether these misconceptions can be the cause of all unexplained failures.

    Mutants of these misconceptions that cause none but the attempt's failures must together cause
    all unexplained ones.

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


def learns_more(observations: Iterable[ObservedReply]) -> bool:
    """Return whether the outputs depend on parameters that the reference does not have.

    A gradient that is not zero proves it. Then no mutant need have the same values.
    """
    return any(
        gradient is not None and bool(gradient.any()) and name not in e.expected.gradients
        for e in observations
        for name, gradient in e.reply.gradients.items()
    )


def proven_by_parameters(response: Response) -> dict[int, str]:
    """Return the calls with other parameters, mapped to the misconception that these prove.

    It is the misconception of all mutants with the same extra and missing parameters in all calls.
    Return none if these mutants have several misconceptions, or if there are no such mutants.
    """
    recording, observations = response.recording, response.written
    calls = [i for i, oracles in enumerate(recording.aspects) if "parameters" in oracles]
    if any(i not in observations or observations[i].actual.raised for i in calls):
        return {}

    def difference(i: int, reply: ReplyFingerprint) -> Names:
        expected, actual = recording.expected_reply(i).parameters.keys(), reply.parameters.keys()
        return actual - expected, expected - actual

    differences = {i: difference(i, observations[i].actual) for i in calls}
    wrong_calls = [i for i in calls if any(differences[i])]
    if not wrong_calls:
        return {}
    names = set[str]()
    for m in response.mutants:
        replies = recording.answers(m, calls)
        alike = [not r.raised and difference(i, r) == differences[i] for i, r in replies.items()]
        if len(alike) == len(calls) and all(alike):
            names.add(response.id(m))
    names.discard(UNTOUCHED)  # an attempt that answers is not an untouched stub
    are_fewer = all(missing and not extra for extra, missing in differences.values())
    if are_fewer and UNREGISTERED in recording.ids:
        # `.to` does not reach parameters that are not registered: two dtypes meet
        raised = (observation.reply.raised for observation in observations.values())
        names = {UNREGISTERED} if any(r and is_dtype_fault(r) for r in raised) else names
    return dict.fromkeys(wrong_calls, names.pop()) if len(names) == 1 else {}


def without_more(
    observations: Mapping[int, ObservedReply], calls: Collection[int]
) -> dict[int, ObservedReply]:
    """Return the replies without the extra parameters, or none if a parameter is missing.

    Calls set extra parameters to zero, so the values show what else is wrong.

    Args:
        observations: the replies, by call.
        calls: the calls in which parameters differ. If there are none, return none.
    """
    if not calls or any(
        observation.expected.parameters.keys() - observation.actual.parameters
        for observation in observations.values()
    ):
        return {}
    fewer = dict[int, ObservedReply]()
    for i, e in observations.items():
        gradients = {n: g for n, g in e.actual.gradients.items() if n in e.expected.gradients}
        parameters = {name: e.actual.parameters[name] for name in e.expected.parameters}
        actual = replace(e.actual, gradients=gradients, parameters=parameters)
        fewer[i] = replace(e, actual=actual)
    return fewer


REFUSES = "refuses_allowed"
# a guard that tests the divisibility of the wrong width also refuses allowed inputs
UNDIVIDED = "divisibility_unchecked"
_LIMITS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_METHODS = ("__init__", "forward")
_ASKED = ("size", "dim", "numel", "is_integer")
_COUNTED = ("len", "int", "min", "max", "abs", "divmod", "isinstance")
# A value depends only on arguments and their sizes, also on sizes of computed values, or on more.
_GIVEN, _COMPUTED, _OTHER = range(3)
# The most lines that are searched for guards: hundreds of calls may raise, each in another line.
MAX_LINES = 16
_PARTS = (
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

    line: int
    divides: bool
    inverted: bool = False


def guards_of(source: Source, raised: Mapping[int, tuple[str, Raised]]) -> dict[int, Guard]:
    """Return the guard that refused each of these calls. Other calls are left out.

    A function that calls another one can meet a guard of the other one.

    Args:
        source: the attempt's text.
        raised: for calls with allowed arguments the function or class, and the exception.
    """
    # hundreds of calls may raise in one line
    lines = {(target, exception.line): exception for target, exception in raised.values()}
    candidates = (
        guard_of(source, target, exception)
        for (target, _), exception in islice(lines.items(), MAX_LINES)
    )
    guards = {guard.line: guard for guard in candidates if guard is not None}
    return {
        i: guards[e.line]
        for i, (_, e) in raised.items()
        if e.line and e.line in guards and is_refusal(e)
    }


def guard_of(source: Source, target: str, raised: Raised) -> Guard | None:
    """Return the guard of this function or class that raised, or None if something else raised.

    Guards of helper functions do not count, because their arguments may be computed values.
    """
    line = raised.line or 0
    for function in _functions(source, target) if line and is_refusal(raised) else ():
        tests = _tests(function.body, line)
        if tests and all(map(_Sizes(function, line).decide, tests)):
            inverted = any(map(_asks_for_no_rest, tests))
            nodes = chain.from_iterable(map(ast.walk, tests))
            divides = any(
                isinstance(node, ast.Mod | ast.FloorDiv) or getattr(node, "id", "") == "divmod"
                for node in nodes
            )
            return Guard(line, divides and not inverted, inverted)
    return None


def _functions(source: Source, target: str) -> Iterator[ast.FunctionDef]:
    """Yield the function, or the methods of the class and of its base classes in the file."""
    classes, class_names = list[ast.ClassDef](), {target}
    for statement in reversed(source.statements):
        if isinstance(statement, ast.FunctionDef) and statement.name == target:
            yield statement
        elif isinstance(statement, ast.ClassDef) and statement.name in class_names:
            classes.append(statement)
            class_names |= {base.id for base in statement.bases if isinstance(base, ast.Name)}
    for method in (member for definition in classes for member in definition.body):
        if isinstance(method, ast.FunctionDef) and method.name in _METHODS:
            yield method


def _tests(body: Sequence[ast.stmt], line: int) -> list[ast.expr]:
    """Return the conditions under which the `raise` or `assert` on this line raises.

    Return none if it has no condition, or if it is in a loop.
    """
    for statement in body:
        if not statement.lineno <= line <= (statement.end_lineno or 0):
            continue
        if isinstance(statement, ast.Assert):
            return [ast.UnaryOp(ast.Not(), statement.test)]
        if isinstance(statement, ast.If):
            otherwise = ast.UnaryOp(ast.Not(), statement.test)
            for branch, test in ((statement.body, statement.test), (statement.orelse, otherwise)):
                if any(
                    isinstance(node, ast.Raise) and node.lineno <= line <= (node.end_lineno or 0)
                    for node in branch
                ):
                    return [test]
                if within := _tests(branch, line):
                    return [test, *within]
    return []


def _asks_for_no_rest(test: ast.expr) -> bool:
    """Return whether a test is true if no remainder is left: `C % n == 0`, `not C % n`."""
    match test:
        case ast.Compare(
            left=ast.BinOp(op=ast.Mod()), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]
        ):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod())):
            return True
    return False


class _Sizes:
    """The origin of each name of a function before a line: arguments, sizes, or something else.

    A guard may compare sizes of computed values with a limit, such as the number of all keys. A
    test that such sizes are equal is no guard: it looks for a mistake in the code itself.
    """

    def __init__(self, function: ast.FunctionDef, line: int) -> None:
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        self._names = {argument.arg: _GIVEN for argument in arguments}
        nodes = (node for statement in function.body for node in ast.walk(statement))
        assignments = (n for n in nodes if isinstance(n, _ASSIGNMENTS) and n.lineno < line)
        for node in sorted(assignments, key=lambda node: node.lineno):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            self._bind(targets, _OTHER if node.value is None else self._made_of(node.value))

    def decide(self, test: ast.expr) -> bool:
        """Return whether the result of this test depends on sizes alone."""
        operators = [
            op for node in ast.walk(test) if isinstance(node, ast.Compare) for op in node.ops
        ]
        limits = bool(operators) and all(isinstance(op, _LIMITS) for op in operators)
        return self._made_of(test) <= (_COMPUTED if limits else _GIVEN)

    def _made_of(self, node: ast.expr) -> int:
        """Return the origin of a value.

        Each node is visited once, because a student decides how deep the text is nested.
        """
        match node:
            case ast.Constant():
                return _GIVEN
            case ast.Name():
                return self._names.get(node.id, _OTHER)
            case ast.Attribute():
                return (
                    _size_of(self._made_of(node.value))
                    if node.attr == "shape"
                    else self._made_of(node.value)
                )
            case ast.Subscript():
                return max(self._made_of(node.value), self._made_of(node.slice))
            case ast.Call():
                return max([self._made_by(node.func), *map(self._made_of, node.args)])
            case ast.NamedExpr():
                made_of = self._made_of(node.value)
                self._bind([node.target], made_of)
                return made_of
        if isinstance(node, _PARTS):
            children = (
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
            )
            return max(map(self._made_of, children), default=_GIVEN)
        return _OTHER

    def _made_by(self, func: ast.expr) -> int:
        if isinstance(func, ast.Attribute) and func.attr in _ASKED:
            return _size_of(self._made_of(func.value))
        return _GIVEN if isinstance(func, ast.Name) and func.id in _COUNTED else _OTHER

    def _bind(self, targets: Iterable[ast.expr], made_of: int) -> None:
        names = {
            node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
        }
        self._names.update(dict.fromkeys(names - {"self"}, made_of))


def _size_of(made_of: int) -> int:
    return min(made_of, _COMPUTED)
