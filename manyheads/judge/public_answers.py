"""An attempt's answers to the recorded calls, and in which function each misconception shows itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from ..checks.explain import kind_of
from ..checks.transcript import target_of
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.observe import Observed
from ..diagnosis.proofs import proven_by_answer
from ..diagnosis.recording import Recording, differs
from ..diagnosis.row import Row
from ..result import Diagnosed
from ..submission.standing import INTERFACE
from ..submission.unwritten import UNTOUCHED, unwritten_names
from .axes import Signatures
from .function_states import uses


@dataclass
class Answers:
    """An attempt's answers, with what is needed to tell what they show.

    in_single: the calls that were asked in float32, though any dtype would do: their dtype says nothing.
    source, signatures: the text, and of each function its signatures, as far as they are known.
    is_graded: then no exception's message is told.
    """

    recording: Recording
    seen: Mapping[int, Observed]
    in_single: Set[int]
    source: str
    signatures: Signatures
    is_graded: bool

    def __post_init__(self) -> None:
        recording, seen = self.recording, self.seen
        single = {i: e for i, e in seen.items() if i in self.in_single}
        due = {i: replace(e, found=replace(e.found, dtype=e.right.dtype)) for i, e in single.items()}
        compared = {i: e for i, e in {**seen, **due}.items() if i in recording.facets}  # else mutants are not compared
        self._row = Row(recording, compared, compared, {*compared})
        self.wrong, self._right = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for i, each in compared.items():
            (self.wrong if differs(recording, i, each.found) else self._right)[target_of(each.call)].append(i)
        self.proven = defaultdict[str, set[str]](set)  # by the misconception, the functions that were called
        for i, each in seen.items():
            for id_ in self.proven_by(i):
                self.proven[id_].add(target_of(each.call))

    def proven_by(self, call: int) -> Iterator[str]:
        """Yield the misconceptions that an exception or an answer proves by itself."""
        seen = self.seen[call]
        kind = kind_of(seen.reply.raised) if seen.reply.raised and seen.right.raised is None else None
        yield from filter(None, (kind and kind.misconception, proven_by_answer(self.recording, call, seen)))

    def of(self, function: str) -> list[Observed]:
        """Return what was seen of a function."""
        return [each for each in self.seen.values() if target_of(each.call) == function]

    def is_seen(self, id_: str, calls: Sequence[int]) -> bool:
        """Return whether a mutant answers one of these calls as the attempt did."""
        return any(self._is_alike(m, i) for m in self._mutants(id_) for i in calls if i in self._row.asked)

    def is_also_in(self, id_: str, function: str) -> bool:
        """Return whether it is proved there, or one mutant answers every call of the function as the attempt did."""
        wrong, right = self.wrong[function], self._right[function]
        return function in self.proven[id_] or any(
            bool(wrong) and all(self._is_alike(m, i) for i in wrong) and all(self._row.silent(m, i) for i in right)
            for m in self._mutants(id_)
        )

    def answer_alike(self, id_: str, other: str, functions: Container[str]) -> bool:
        """Return whether mutants of both that answer a wrong call as the attempt did answer each call of these functions alike."""
        known, wrong = self.recording, self._row.wrong
        calls = [i for i, call in enumerate(known.calls) if target_of(call) in functions]
        alike = ([m for m in self._mutants(of) if any(self._is_alike(m, i) for i in wrong)] for of in (id_, other))
        first, second = ({tuple(known.mutants[m].answers[i] for i in calls) for m in own} for own in alike)
        return not calls or not first.isdisjoint(second)

    def place(self, id_: str, wrong: Sequence[str]) -> str:
        """Return the function where it was found, of those that are wrong; "" where it is about the whole file."""
        if id_ == UNTOUCHED:
            return ""
        proven = self.proven[id_]
        seen = [name for name in wrong if name in proven or self.is_seen(id_, self.wrong[name])]
        # Of those that are proved some may be a name that the file does not have.
        # Of two faults in one function neither answers as both do: there a mutant that answers anything wrongly will do.
        silent, mutants = self._row.silent, self._mutants(id_)
        can = (name for name in wrong if not all(silent(m, i) for m in mutants for i in self.wrong[name]))
        return next(chain(seen, sorted(proven), can, wrong), "")

    def _mutants(self, id_: str) -> list[int]:
        return [m for m, mutant in enumerate(self.recording.mutants) if mutant.id == id_]

    def _is_alike(self, mutant: int, call: int) -> bool:
        return not self._row.silent(mutant, call) and self._row.explains(mutant, call)


def placed(diagnosis: Diagnosis, wrong: Sequence[str], answers: Answers) -> Diagnosis:
    """Return the diagnosis, each misconception with its functions and the titles of its alternatives; none that may follow.

    wrong: the functions that are wrong, not those that are not written, or not there.
    """
    source, words = answers.source, answers.recording.words
    own = [name for name in wrong if len(wrong) == 1 or not {*wrong} & uses(source, name)]  # it follows from no other
    empty = unwritten_names(source)

    def located(found: tuple[Diagnosed, ...]) -> tuple[Diagnosed, ...]:
        places = [answers.place(each.id, wrong) for each in found]
        unnamed = [name for name in wrong if name not in places]
        told = []
        for each, place in zip(found, places, strict=True):
            others = (n for n in unnamed if each.id != UNTOUCHED and (n in own or each.id == INTERFACE))
            also_in = tuple(n for n in others if answers.is_also_in(each.id, n))
            alike = [a for a in each.alternatives if a in words and answers.answer_alike(each.id, a, empty)]
            titles = tuple(words[a].title for a in alike)
            told.append(each.model_copy(update={"function": place, "also_in": also_in, "alternative_titles": titles}))
        return tuple(told)

    found = diagnosis.changed(located)
    left = {*wrong}.difference(*((each.function, *each.also_in) for each in found.every))

    def may_follow(each: Diagnosed) -> bool:  # from another function that is wrong and has no name
        return not answers.proven[each.id] and bool(each.function) and not left.isdisjoint(uses(source, each.function))

    return found.changed(lambda every: tuple(each for each in every if not may_follow(each)))
