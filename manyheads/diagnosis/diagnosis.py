"""What is found about an attempt, graded or at home: faults that explain its values, and the names
that are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ..result import Diagnosed
from .bank import MisconceptionText

AllWords = Mapping[str, MisconceptionText]  # by the ids of misconceptions


@dataclass(frozen=True)
class Candidate:
    """A misconception that explains an attempt's values, alone or with others, and those that would
    do in its place.
    """

    id: str
    alternatives: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Its own, and those of the alternatives."""
        return (self.id, *self.alternatives)


@dataclass(frozen=True)
class Diagnosis:
    """What is found about an attempt.

    Attributes:
        named: the misconceptions that explain it, most likely first; empty if everything passed or
            nothing explains it.
        also: what is proved, but does not explain why the values are wrong, which nothing does.
        together: the ids, among those named, that explain the values only together, as two
            mistakes.
        answers: a digest of the wrong answers, which attempts with the same mistake share.
    """

    named: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    together: tuple[str, ...] = ()
    answers: str = ""

    @property
    def misconceptions(self) -> tuple[Diagnosed, ...]:
        """All that is found."""
        return (*self.named, *self.also)

    def changed(
        self, change: Callable[[tuple[Diagnosed, ...]], tuple[Diagnosed, ...]]
    ) -> Diagnosis:
        """Return the same with more to tell of each."""
        return replace(self, named=change(self.named), also=change(self.also))

    def of_one_mistake(self) -> Diagnosis:
        """Return the same without what takes two mistakes: one edit of the text makes every check
        pass.
        """
        return replace(
            self,
            named=tuple(d for d in self.named if d.id not in self.together),
            also=(),
            together=(),
        )


NOTHING = Diagnosis()


def named(words: AllWords, id_: str, alternatives: tuple[str, ...] = ()) -> Diagnosed:
    """Return a misconception with its words."""
    text = words.get(id_)
    title, hint = (id_.replace("_", " "), "") if text is None else (text.title, text.hints[0])
    return Diagnosed(id=id_, title=title, hint=hint, alternatives=alternatives)


def naming(words: AllWords, id_: str) -> Diagnosis:
    """Return the diagnosis for a misconception that is known without any check."""
    return Diagnosis((named(words, id_),))


def in_order(
    words: AllWords,
    exceptions: Iterable[str],
    faults: Iterable[Candidate],
    suspects: Iterable[str],
    unwritten: Iterable[str],
    is_cause: bool,
) -> Diagnosis:
    """Return the names in their order: what exceptions prove, what explains the values, what
    answers prove, what is not written.

    The last says nothing of what is written. is_cause: whether what is proved, or a fault, may be
    why the values are wrong; else what is proved is told beside that.
    """
    alternatives: dict[str, tuple[str, ...]] = {}
    for fault in faults:  # two mutants of one misconception may explain two calls
        alternatives.setdefault(fault.id, fault.alternatives)
    proven = [*exceptions, *suspects]
    order = dict.fromkeys(
        [*exceptions, *alternatives, *suspects, *unwritten] if is_cause else unwritten
    )
    return Diagnosis(
        tuple(named(words, id_, alternatives.get(id_, ())) for id_ in order),
        () if is_cause else tuple(named(words, id_) for id_ in dict.fromkeys(proven)),
        tuple(alternatives) if len(alternatives) > 1 else (),
    )
