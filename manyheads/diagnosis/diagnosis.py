"""The result of a diagnosis: candidates from the fault dictionary, and the misconceptions to name.

Grading and a student's machine produce the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ..result import Diagnosed
from .bank import MisconceptionText

AllWords = Mapping[str, MisconceptionText]  # the texts of each misconception, by its id


@dataclass(frozen=True)
class Candidate:
    """A misconception that explains an attempt's values, alone or together with others.

    Attributes:
        alternatives: the misconceptions that explain the same values.
    """

    id: str
    alternatives: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of the misconception, then those of the alternatives."""
        return (self.id, *self.alternatives)


@dataclass(frozen=True)
class Diagnosis:
    """The misconceptions that the replies of an attempt show.

    Attributes:
        named: the misconceptions that explain the attempt, most likely first; empty if everything
            passed or nothing explains it.
        also: misconceptions that are proven but do not explain the wrong values. It is empty unless
            nothing explains these.
        together: the ids, among `named`, that explain the values only together, as two mistakes.
        answers: a digest of the wrong replies, which attempts with the same mistake share.
    """

    named: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    together: tuple[str, ...] = ()
    answers: str = ""

    @property
    def misconceptions(self) -> tuple[Diagnosed, ...]:
        """All misconceptions, `named` before `also`."""
        return (*self.named, *self.also)

    def changed(
        self, change: Callable[[tuple[Diagnosed, ...]], tuple[Diagnosed, ...]]
    ) -> Diagnosis:
        """Return the diagnosis with `change` applied to `named` and to `also`."""
        return replace(self, named=change(self.named), also=change(self.also))

    def of_one_mistake(self) -> Diagnosis:
        """Return the diagnosis without the misconceptions that need a second mistake.

        It is for an attempt in which one edit makes every check pass.
        """
        return replace(
            self,
            named=tuple(d for d in self.named if d.id not in self.together),
            also=(),
            together=(),
        )


NOTHING = Diagnosis()


def named(words: AllWords, id_: str, alternatives: tuple[str, ...] = ()) -> Diagnosed:
    """Return a misconception with its title and first hint."""
    text = words.get(id_)
    title, hint = (id_.replace("_", " "), "") if text is None else (text.title, text.hints[0])
    return Diagnosed(id=id_, title=title, hint=hint, alternatives=alternatives)


def naming(words: AllWords, id_: str) -> Diagnosis:
    """Return the diagnosis with one misconception that no check is needed for."""
    return Diagnosis((named(words, id_),))


def in_order(
    words: AllWords,
    exceptions: Iterable[str],
    faults: Iterable[Candidate],
    suspects: Iterable[str],
    unwritten: Iterable[str],
    is_cause: bool,
) -> Diagnosis:
    """Return the diagnosis with its misconceptions in order.

    Args:
        words: the texts of each misconception.
        exceptions: misconceptions that exceptions prove. They come first.
        faults: candidates that explain the values. They come second.
        suspects: misconceptions that replies prove. They come third.
        unwritten: names for functions that are not written. They come last, because they show
            nothing about the functions that are.
        is_cause: whether a proven misconception, or a candidate, may be why the values are wrong.
            If not, the proven ones go to `Diagnosis.also`.
    """
    alternatives: dict[str, tuple[str, ...]] = {}
    for fault in faults:  # two mutants of one misconception may explain two calls
        alternatives.setdefault(fault.id, fault.alternatives)
    together = tuple(alternatives) if len(alternatives) > 1 else ()
    if not is_cause:
        proven = dict.fromkeys([*exceptions, *suspects])
        return Diagnosis(
            tuple(named(words, id_, alternatives.get(id_, ())) for id_ in dict.fromkeys(unwritten)),
            tuple(named(words, id_) for id_ in proven),
            together,
        )
    order = dict.fromkeys([*exceptions, *alternatives, *suspects, *unwritten])
    return Diagnosis(
        tuple(named(words, id_, alternatives.get(id_, ())) for id_ in order), together=together
    )
