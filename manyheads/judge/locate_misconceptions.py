"""Find the function that has a misconception, from the replies to public calls.

A misconception is *seen* in a function if one of its mutants gives the same wrong answer to a call
of the function as the attempt does. It is *proved* there if one reply shows it without any mutant.
A function is *wrong* if it fails a visible check, or if a misconception is seen there first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from ..checks.explain_exceptions import kind_of
from ..checks.runner import target_of
from ..diagnosis.bank import Diagnosis
from ..diagnosis.evidence import UNREGISTERED, misconception_of_answer
from ..diagnosis.fault_dictionary import Response, differs
from ..diagnosis.mutants_explaining_nondeterminism import misconceptions_of_nondeterminism
from ..diagnosis.observed_reply import ObservedReply
from ..result import Diagnosed
from ..submission.source import INTERFACE, UNTOUCHED, Source
from .public_calls import PublicReplies

# For each misconception, those that follow from it in the same function. If forward makes a layer,
# or the module does not own it, the layer stays float32 and on the CPU when the module is moved.
CONSEQUENCES: Mapping[str, Set[str]] = {UNREGISTERED: {"hard_coded_dtype", "hard_coded_device"}}


@dataclass(frozen=True)
class LocatedMisconception:
    """A misconception with the function that has it.

    Attributes:
        diagnosed: The misconception, as the diagnosis names it.
        function: The function, or "" if the misconception concerns the whole file.
        also_in: Other functions that have it, and no other misconception.
        alternative_titles: The titles of the alternatives that a student reads.
        needs_another: Whether it explains the replies only together with another misconception.
    """

    diagnosed: Diagnosed
    function: str = ""
    also_in: tuple[str, ...] = ()
    alternative_titles: tuple[str, ...] = ()
    needs_another: bool = False

    @property
    def id(self) -> str:
        """The id of the misconception."""
        return self.diagnosed.id

    @property
    def functions(self) -> tuple[str, ...]:
        """All functions that have it; ("",) if it concerns the whole file."""
        return (self.function, *self.also_in)


class RepliesByFunction:
    """The public replies of an attempt, by function, compared with the reference and the mutants.

    Only calls whose reply fields are recorded are compared. If the judge chose float32 for a call,
    its dtype is not compared.

    Attributes:
        replies: The replies.
        wrong: The indices of the wrong calls of each function.
    """

    def __init__(self, replies: PublicReplies) -> None:
        """Compare the replies with the reference's."""
        dictionary, observations = replies.dictionary, replies.observations
        self.replies = replies
        self._dictionary = dictionary
        compared: dict[int, ObservedReply] = {}
        for i, observation in observations.items():
            if i not in dictionary.compared_fields:
                continue  # no fields that the attempt and mutants could be compared by
            if i in replies.in_single:
                # The judge made this call in float32, so the dtype of the reply shows nothing.
                actual = replace(observation.actual, dtype=observation.expected.dtype)
                observation = replace(observation, actual=actual)
            compared[i] = observation
        # All replies are in the syndrome, also right ones: `explains` may then be asked for any.
        self._response = Response(
            recording=dictionary, written=compared, syndrome=compared, calls={*compared}
        )
        self._compared = compared
        self.wrong = defaultdict[str, list[int]](list)
        self._right = defaultdict[str, list[int]](list)
        for i, observation in compared.items():
            is_wrong = differs(dictionary, i, observation.actual)
            calls = self.wrong if is_wrong else self._right
            calls[target_of(observation.call)].append(i)

    @cached_property
    def functions_with_evidence(self) -> Mapping[str, Set[str]]:
        """For each misconception, the functions whose replies prove it.

        A single reply proves it (`misconceptions_shown_by`), or replies that vary
        (`misconceptions_of_nondeterminism`).
        """
        proven = defaultdict[str, set[str]](set)
        for i, observation in self.replies.observations.items():
            for id_ in self.misconceptions_shown_by(i):
                proven[id_].add(target_of(observation.call))
        wrong_calls = {i: self._compared[i] for calls in self.wrong.values() for i in calls}
        response = replace(self._response, syndrome=wrong_calls)
        for i, id_ in misconceptions_of_nondeterminism(response).items():
            proven[id_].add(target_of(self._compared[i].call))
        return proven

    def misconceptions_shown_by(self, call: int) -> Iterator[str]:
        """Yield the misconceptions that the exception or the answer of a call proves by itself.

        An exception proves nothing if the reference raises, too.
        """
        observation = self.replies.observations[call]
        raised = observation.reply.raised
        error_kind = kind_of(raised) if raised and observation.expected.raised is None else None
        if error_kind and error_kind.misconception:
            yield error_kind.misconception
        if id_ := misconception_of_answer(self._dictionary, call, observation):
            yield id_

    def observations_of(self, function: str) -> list[ObservedReply]:
        """Return the observed replies of a function."""
        observations = self.replies.observations.values()
        return [o for o in observations if target_of(o.call) == function]

    def is_seen(self, id_: str, calls: Sequence[int]) -> bool:
        """Return whether a mutant gives the attempt's wrong answer to one of these calls.

        Args:
            id_: The misconception of the mutant.
            calls: The indices of the calls. Those that cannot be compared do not count.
        """
        compared = [i for i in calls if i in self._response.calls]
        return any(self._is_as_wrong(m, i) for m in self._mutants(id_) for i in compared)

    def is_also_in(self, id_: str, function: str) -> bool:
        """Return whether a second function has a misconception, too.

        It has if a reply proves the misconception there. It has, too, if the function has wrong
        calls, and one mutant gives the attempt's answers to these and right answers to all others.
        """
        if function in self.functions_with_evidence.get(id_, ()):
            return True
        mutants = self._mutants(id_) if self.wrong[function] else ()
        return any(self._matches(m, function) for m in mutants)

    def mutants_answer_alike(self, id_: str, other_id: str, functions: Container[str]) -> bool:
        """Return whether mutants of both misconceptions answer the calls of these functions alike.

        Only mutants that explain a wrong answer of the attempt are compared. It is enough if one of
        the first and one of the second misconception have the same recorded answers. Return True if
        these functions have no recorded calls.
        """
        recorded_calls = enumerate(self._dictionary.calls)
        calls = [i for i, call in recorded_calls if target_of(call) in functions]
        if not calls:
            return True
        return not self._answers_of(id_, calls).isdisjoint(self._answers_of(other_id, calls))

    def function_of(self, id_: str, wrong_functions: Sequence[str]) -> str:
        """Return the function to which a misconception is attributed; "" if there is none.

        An untouched stub concerns the whole file, so it has none. Any other misconception is
        attributed to the first of these:

        1. the first wrong function in which a reply proves the misconception, or in which it is
           seen (`is_seen`);
        2. any other function in which a reply proves it, such as one that the file lacks (the
           first in alphabetical order);
        3. the first wrong function with a call that both the attempt and a mutant of the
           misconception fail: if a function has two faults, no mutant with one fault answers as the
           attempt does;
        4. the first wrong function.
        """
        if id_ == UNTOUCHED:
            return ""
        proven = self.functions_with_evidence.get(id_, frozenset[str]())
        with_evidence = [
            name
            for name in wrong_functions
            if name in proven or self.is_seen(id_, self.wrong[name])
        ]
        shown_elsewhere = sorted(set(proven).difference(wrong_functions))
        detecting = (name for name in wrong_functions if self._detects(name, id_))
        return next(chain(with_evidence, shown_elsewhere, detecting, wrong_functions), "")

    def _mutants(self, id_: str) -> list[int]:
        """Return the indices of the mutants of a misconception."""
        return [m for m, mutant in enumerate(self._dictionary.mutants) if mutant.id == id_]

    def _matches(self, mutant: int, function: str) -> bool:
        """Return whether a mutant answers all calls of a function as the attempt does."""
        is_as_wrong = all(self._is_as_wrong(mutant, i) for i in self.wrong[function])
        return is_as_wrong and all(
            self._response.survives(mutant, i) for i in self._right[function]
        )

    def _detects(self, function: str, id_: str) -> bool:
        """Return whether a mutant of this misconception fails a call that the attempt fails."""
        mutants, calls = self._mutants(id_), self.wrong[function]
        return any(not self._response.survives(m, i) for m in mutants for i in calls)

    def _answers_of(self, id_: str, calls: Sequence[int]) -> set[tuple[int | None, ...]]:
        """Return the answers to these calls by each mutant that explains a wrong call.

        An answer is the index of a recorded reply, or None if it is nondeterministic.
        """
        answers = set[tuple[int | None, ...]]()
        for m in self._mutants(id_):
            if any(self._is_as_wrong(m, i) for i in self._response.syndrome):
                answers.add(tuple(self._dictionary.mutants[m].answers[i] for i in calls))
        return answers

    def _is_as_wrong(self, mutant: int, call: int) -> bool:
        """Return whether a mutant fails a call, and gives the same answer as the attempt."""
        return not self._response.survives(mutant, call) and self._response.explains(mutant, call)


def locate_misconceptions(
    diagnosis: Diagnosis,
    wrong_functions: Sequence[str],
    replies_by_function: RepliesByFunction,
    shown_by_text: Container[str],
) -> tuple[list[LocatedMisconception], list[LocatedMisconception]]:
    """Find the functions that have the misconceptions of a diagnosis.

    Returns the misconceptions that explain the wrong replies (`diagnosis.named`), then those that
    some reply proves although they do not explain the wrong values (`diagnosis.also`). A
    misconception is not returned in two cases:

    1. It may be a consequence: its function uses another wrong function that has no misconception,
       and no reply proves it.
    2. It follows from another misconception of the same function (`CONSEQUENCES`).

    Args:
        diagnosis: The misconceptions, without functions.
        wrong_functions: The wrong functions, without those that are not written or not defined.
        replies_by_function: The attempt's replies, compared with those of the mutants.
        shown_by_text: Functions whose text shows the mistake. Their misconceptions get no
            alternatives.
    """
    explaining, proved_only = (
        _with_functions(
            group, diagnosis.together, wrong_functions, replies_by_function, shown_by_text
        )
        for group in (diagnosis.named, diagnosis.also)
    )
    misconceptions = [*explaining, *proved_only]
    explained = {function for m in misconceptions for function in m.functions}
    unexplained = {*wrong_functions} - explained
    source = replies_by_function.replies.source

    def may_be_a_consequence(misconception: LocatedMisconception) -> bool:
        """Return whether another wrong function, which nothing explains, may be the cause."""
        return (
            not replies_by_function.functions_with_evidence.get(misconception.id)
            and bool(misconception.function)
            and not unexplained.isdisjoint(source.uses(misconception.function))
        )

    def follows_from_a_sibling(misconception: LocatedMisconception) -> bool:
        siblings = (m.id for m in misconceptions if m.function == misconception.function)
        return any(misconception.id in CONSEQUENCES.get(id_, ()) for id_ in siblings)

    def is_left_out(misconception: LocatedMisconception) -> bool:
        return may_be_a_consequence(misconception) or follows_from_a_sibling(misconception)

    return (
        [m for m in explaining if not is_left_out(m)],
        [m for m in proved_only if not is_left_out(m)],
    )


def _with_functions(
    group: Sequence[Diagnosed],
    together: Container[str],
    wrong_functions: Sequence[str],
    replies_by_function: RepliesByFunction,
    shown_by_text: Container[str],
) -> list[LocatedMisconception]:
    """Return these misconceptions with their functions, and with the titles of alternatives.

    Other wrong functions that have a misconception, too (`is_also_in`), are in `also_in` if no
    misconception of the group is attributed to them, and if they use no wrong function. They may
    use one if the interface is wrong, because that never follows from another function. An
    untouched stub has no other functions, because it concerns the whole file.

    The title of an alternative is shown if three conditions hold: the dictionary has it; the text
    does not show the mistake itself; and mutants of the misconception and of the alternative give
    the same answers to calls of functions that are not written (`mutants_answer_alike`).

    Args:
        group: The misconceptions.
        together: The ids of those that explain the replies only together with another one.
        wrong_functions: As for `locate_misconceptions`.
        replies_by_function: As for `locate_misconceptions`.
        shown_by_text: As for `locate_misconceptions`.
    """
    source, words = replies_by_function.replies.source, replies_by_function.replies.dictionary.words
    functions = [replies_by_function.function_of(m.id, wrong_functions) for m in group]
    without_misconception = [name for name in wrong_functions if name not in functions]
    independent = _independent(wrong_functions, source)
    located = []
    for misconception, function in zip(group, functions, strict=True):
        id_ = misconception.id
        may_have_it = [name for name in without_misconception if name in independent]
        if id_ == INTERFACE:
            may_have_it = without_misconception
        elif id_ == UNTOUCHED:
            may_have_it = []
        alternatives = [
            alternative
            for alternative in misconception.alternatives
            if alternative in words
            and function not in shown_by_text
            and replies_by_function.mutants_answer_alike(id_, alternative, source.unwritten_names)
        ]
        located.append(
            LocatedMisconception(
                misconception,
                function=function,
                also_in=tuple(n for n in may_have_it if replies_by_function.is_also_in(id_, n)),
                alternative_titles=tuple(words[alternative].title for alternative in alternatives),
                needs_another=id_ in together,
            )
        )
    return located


def _independent(wrong_functions: Sequence[str], source: Source) -> Collection[str]:
    """Return the wrong functions that use no other wrong function."""
    if len(wrong_functions) == 1:
        return wrong_functions  # without parsing the text
    return [name for name in wrong_functions if not {*wrong_functions} & source.uses(name)]
