"""What is found about an attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..result import Diagnosed
from .bank import MisconceptionText, Mutant, Namespace
from .recording import Words

AllWords = Mapping[str, MisconceptionText] | Mapping[str, Words]  # by the ids of misconceptions


@dataclass(frozen=True)
class Fault:
    """A misconception that explains an attempt's values, alone or with others, and those that would do in its place.

    namespace: of a mutant that explains them; empty where mutants are recorded.
    """

    id: str
    alternatives: tuple[str, ...] = ()
    namespace: Namespace = field(default_factory=dict, repr=False, compare=False)

    @property
    def ids(self) -> tuple[str, ...]:
        """Its own, and those of the alternatives."""
        return (self.id, *self.alternatives)


Faults = tuple[Fault, ...] | None  # that explain values; None where nothing does


def fault_of(mutant: Mutant, ids: Iterable[str] = ()) -> Fault:
    """Return the fault of a mutant, with the others of these ids as alternatives."""
    return Fault(mutant.id, tuple(dict.fromkeys(id_ for id_ in ids if id_ != mutant.id)), mutant.namespace)


def without(id_: str, faults: Iterable[Fault]) -> Faults:
    """Return the faults where something speaks against this misconception; None where one of them has no alternative."""
    left = [(fault, [each for each in fault.ids if each != id_]) for fault in faults]
    if not all(ids for _, ids in left):
        return None
    return tuple(Fault(ids[0], tuple(ids[1:]), fault.namespace) for fault, ids in left)


@dataclass(frozen=True)
class Diagnosis:
    """What is found about an attempt.

    Attributes:
        named: the misconceptions that explain it, most likely first; empty if everything passed or nothing explains it.
        also: what is proved, but does not explain why the values are wrong, which nothing does.
        together: the ids, among those named, that explain the values only together, as two mistakes.
    """

    named: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    together: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Diagnosed, ...]:
        """All that is found."""
        return (*self.named, *self.also)

    def changed(self, change: Callable[[tuple[Diagnosed, ...]], tuple[Diagnosed, ...]]) -> Diagnosis:
        """Return the same with more to tell of each."""
        return replace(self, named=change(self.named), also=change(self.also))

    def of_one_mistake(self) -> Diagnosis:
        """Return the same without what takes two mistakes: one edit of the text makes every check pass."""
        return replace(self, named=tuple(d for d in self.named if d.id not in self.together), together=())


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
    faults: Iterable[Fault],
    suspects: Iterable[str],
    unwritten: Iterable[str],
    also: Iterable[str] = (),
) -> Diagnosis:
    """Return the names in their order: what exceptions prove, what explains the values, what answers prove, what is not written.

    The last says nothing of what is written. also: what is proved, and does not explain why the values are wrong.
    """
    others: dict[str, tuple[str, ...]] = {}
    for fault in faults:  # two mutants of one misconception may explain two calls
        others.setdefault(fault.id, fault.alternatives)
    order = dict.fromkeys([*exceptions, *others, *suspects, *unwritten])
    return Diagnosis(
        tuple(named(words, id_, others.get(id_, ())) for id_ in order),
        tuple(named(words, id_) for id_ in dict.fromkeys(also)),
        tuple(others) if len(others) > 1 else (),
    )
