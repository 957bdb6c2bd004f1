"""Name the misconceptions that an attempt's answers show, held against recorded answers of mutants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from ..checks.explain import is_unfinished
from ..checks.recording import target_of
from ..diagnosis.causes import can_cause
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.equal_sizes import WRONG_AXIS
from ..diagnosis.proven import proven_by
from ..result import Diagnosed
from ..submission.unwritten import UNTOUCHED, unwritten_names
from .alike import due_to_acceptance, proven_by_place
from .chance import due_to_chance, proven_by_chance
from .compared import Compared
from .copies import is_of_copies
from .devices import looks_at_no_numbers, on_another_device
from .facets import differs, facets_of, is_silent, matches
from .file import Fingerprints, Words
from .fingerprint import has_no_numbers
from .foreign_size import has_foreign_size
from .meaning import proven_beside, proven_by_aspect
from .pairs import Named, explaining_pair
from .parameters import proven_by_parameters, that_follow
from .proven import proven_by_answer

MOST_ALTERNATIVES = 1  # where nothing but exceptions came


def diagnose_from_recordings(fingerprints: Fingerprints, seen: Mapping[int, Compared], source: str) -> Diagnosis:
    """Exceptions that speak for themselves, then the mutants that answer as the attempt does.

    What reaches a function that is not written yet says nothing of those that are: it is named last, and explains nothing.

    Args:
        seen: the replies, by the number of the recorded call.
        source: the attempt's text, "" where it is not at hand.
    """
    empty = unwritten_names(source)
    unfinished = {i: e for i, e in seen.items() if _is_unfinished(e) or target_of(e.call) in empty}
    written = {i: e for i, e in seen.items() if i not in unfinished}
    mutates = any(each.reply.mutated for each in seen.values())
    idle = {i for i, e in written.items() if _says_no_more(e, written.values())}
    written = {i: e for i, e in written.items() if i not in idle}
    asked = {call for check in fingerprints.content.checks for call in check.calls} - idle - unfinished.keys()
    raised = {i: name for i, each in written.items() if (name := _proven(each, mutates))}
    answers = {i: proven_by_answer(fingerprints, i, each) for i, each in written.items() if i not in raised}
    proven = {**proven_by_chance(fingerprints, written), **raised, **{i: name for i, name in answers.items() if name}}
    unexplained = {i: e for i, e in written.items() if differs(fingerprints, i, e.found)}
    if any(not is_of_copies(each.call) for each in unexplained.values()):
        mixed = _of_several_faults(fingerprints, unexplained)
        unexplained = {i: e for i, e in unexplained.items() if i not in mixed}
        asked = asked - mixed
    explained = _explain(fingerprints, written, unexplained, asked, raised.keys())
    explained = explained or _by_function(fingerprints, written, unexplained, asked)
    if explained:
        proven = {**proven_beside(fingerprints, written, {name for name, _ in explained}), **proven}
    else:
        shown = {**proven_by_place(fingerprints, written, asked), **proven_by_aspect(fingerprints, written)}
        kept = proven_by_parameters(fingerprints, written)
        following = that_follow(written, kept, raised)
        raised = {i: name for i, name in raised.items() if i not in following}
        proven = {**kept, **shown, **{i: name for i, name in proven.items() if i not in following}}
    last = [UNTOUCHED if target_of(e.call) in empty else _proven(e, mutates) for e in unfinished.values()]
    ids = list(dict.fromkeys(proven.values()))
    others: dict[str, tuple[str, ...]] = {}
    for name, same in explained:
        if ids and not {name, *same}.isdisjoint(ids):  # of mutants with the same answers the proof tells which it is
            continue
        others.setdefault(name, same)  # two mutants of one misconception may explain two calls
    rest = unexplained.keys() - proven.keys()
    if not explained and not can_cause(
        ids, rest, unexplained.keys(), lambda: _differing(fingerprints, unexplained.keys(), asked)
    ):
        return Diagnosis(tuple(named(fingerprints, i) for i in dict.fromkeys(last)), _named(fingerprints, ids))
    order = dict.fromkeys([*raised.values(), *others, *ids, *last])
    return Diagnosis(tuple(named(fingerprints, i, () if i in ids else others.get(i, ())) for i in order))


def _explain(
    fingerprints: Fingerprints,
    written: Mapping[int, Compared],
    unexplained: Mapping[int, Compared],
    asked: Set[int],
    raised: Set[int],
) -> list[Named]:
    """What explains the whole attempt: mutants; beside what proves itself, too; or a pair of mutants in one."""
    if explained := _cover(fingerprints, unexplained, asked, unexplained):
        return explained
    if raised:  # what an exception proves need be no mutant's, as in grading
        left = {i: e for i, e in unexplained.items() if i not in raised}
        if explained := _cover(fingerprints, left, asked - raised, left):
            return explained
    for due in (due_to_chance(fingerprints, written, asked), due_to_acceptance(fingerprints, unexplained, asked)):
        if explained := _beside(fingerprints, unexplained, asked, due):
            return explained
    return explaining_pair(fingerprints, unexplained, asked)


def _named(fingerprints: Fingerprints, ids: Sequence[str]) -> tuple[Diagnosed, ...]:
    return tuple(named(fingerprints, id_) for id_ in ids)


def _differing(fingerprints: Fingerprints, wrong: Set[int], asked: Set[int]) -> dict[str, list[set[int]]]:
    """For each misconception the calls, of those that are asked, that each of its mutants answers as the reference does not.

    Not those that the attempt refuses, as it should: what comes after that is not seen. What chance decides may be the
    mistake's doing where the attempt is wrong.
    """
    content, found = fingerprints.content, dict[str, list[set[int]]]()
    told = {i: facets_of(fingerprints, i) for i in asked if i in wrong or content.right(i).raised != "refused"}
    for mutant in content.mutants:
        answers = {index: content.answer(mutant, index) for index in told}
        calls = {
            i
            for i, each in answers.items()
            if (i in wrong if each is None else not each.agrees(content.right(i), told[i]))
        }
        found.setdefault(mutant.id, []).append(calls)
    return found


def named(fingerprints: Fingerprints, id_: str, alternatives: Sequence[str] = ()) -> Diagnosed:
    """A misconception with its words."""
    words = fingerprints.content.words.get(id_, Words(title=id_.replace("_", " "), explanation="", hints=("", "", "")))
    return Diagnosed(id=id_, title=words.title, hint=words.hints[0], alternatives=tuple(alternatives))


def _proven(seen: Compared, mutates: bool) -> str:
    """The misconception that an exception proves by itself, or ""; mutates: whether an argument was seen to change."""
    return proven_by(seen.reply.raised, mutates) if seen.right.raised is None else ""


def _is_unfinished(seen: Compared) -> bool:
    return seen.reply.raised is not None and seen.right.raised is None and is_unfinished(seen.reply.raised)


def _says_no_more(seen: Compared, others: Collection[Compared]) -> bool:
    """Whether it raises where there are no numbers, because there are none; or in most calls of that function with numbers,
    too: it says no more than those, and in other words.
    """
    if seen.reply.raised is None or not has_no_numbers(seen.right):
        return False
    if looks_at_no_numbers(seen) and not on_another_device(seen):
        return True
    alike = [e for e in others if target_of(e.call) == target_of(seen.call) and e.right.raised is None]
    with_numbers = [e.reply.raised is not None for e in alike if not has_no_numbers(e.right)]
    return 2 * sum(with_numbers) > len(with_numbers)


def _of_several_faults(fingerprints: Fingerprints, unexplained: Mapping[int, Compared]) -> set[int]:
    """The calls with dropout at work that no mutant answers as the attempt does: what another fault leaves of the numbers
    may be in them, too, and the other calls tell them apart.
    """
    replies = fingerprints.content.replies
    return {
        i
        for i, e in unexplained.items()
        if is_of_copies(e.call) and not any(each.agrees(e.found, facets_of(fingerprints, i)) for each in replies[i])
    }


def _beside(
    fingerprints: Fingerprints, unexplained: Mapping[int, Compared], asked: Set[int], due: tuple[Set[int], str]
) -> list[Named]:
    """What explains all but the calls that are due to a mistake of their own, whatever the numbers there, and last that."""
    calls, name = due
    left = {i: each for i, each in unexplained.items() if i not in calls}
    explained = _cover(fingerprints, left, asked - calls, left) if name else []
    return [*explained, (name, ())] if explained else []


def _by_function(
    fingerprints: Fingerprints, written: Mapping[int, Compared], unexplained: Mapping[int, Compared], asked: Set[int]
) -> list[Named]:
    """What explains each function alone, where nothing explains all, and does not contradict an earlier one.

    Functions come in the order of the recorded calls, which is that of their definitions.
    """
    functions = list(dict.fromkeys(map(target_of, fingerprints.calls)))
    found: dict[str, tuple[str, ...]] = {}
    for place, function in enumerate(functions):
        own = {i: each for i, each in unexplained.items() if target_of(each.call) == function}
        answered = {i for i, each in written.items() if each.reply.outputs and each.reply.raised is None}
        calls = {i for i in asked if target_of(fingerprints.calls[i]) == function}
        before = {i for i in asked & answered if target_of(fingerprints.calls[i]) in functions[:place]}
        for name, others in _cover(fingerprints, own, calls | before, unexplained):
            found.setdefault(name, others)
    return list(found.items()) if len(functions) > 1 else []


def _cover(
    fingerprints: Fingerprints,
    unexplained: Mapping[int, Compared],
    asked: Set[int],
    differing: Mapping[int, Compared],
) -> list[Named]:
    """Mutants that together explain these calls on which the attempt differs, the one that explains most first.

    `asked`: the calls on which they may differ from the reference only as the attempt does, where it is `differing`.
    """
    mutants = fingerprints.content.mutants
    impossible = WRONG_AXIS if has_foreign_size(unexplained.values()) else ""
    explains = {
        m: _explained(fingerprints, m, unexplained)
        for m, mutant in enumerate(mutants)
        if mutant.id != impossible and _is_silent_elsewhere(fingerprints, m, differing, asked)
    }
    left, found = set(unexplained), []
    while left:
        best = max(explains, key=lambda m: (len(explains[m] & left), -_unknown(fingerprints, m, asked)), default=None)
        if best is None or not explains[best] & left:
            return []  # something remains that nothing explains: name nothing
        same = [mutants[m].id for m in explains if explains[m] == explains[best] and mutants[m].id != mutants[best].id]
        if len({*same}) > MOST_ALTERNATIVES and all(each.reply.raised for each in unexplained.values()):
            return []  # so many mistakes end in this exception that it says little
        found.append((mutants[best].id, tuple(dict.fromkeys(same))))
        left -= explains[best]
    return found


def _unknown(fingerprints: Fingerprints, mutant: int, asked: Set[int]) -> int:
    """How many of its answers chance decides: of two mutants that explain the same, one that says more is likelier."""
    content = fingerprints.content
    return sum(content.answer(content.mutants[mutant], index) is None for index in asked)


def _explained(fingerprints: Fingerprints, mutant: int, unexplained: Mapping[int, Compared]) -> frozenset[int]:
    """The calls that a mutant explains; none if what it answers is known of none of them."""
    content = fingerprints.content
    explained = frozenset(i for i in unexplained if matches(fingerprints, mutant, i, unexplained[i]))
    is_known = any(content.answer(content.mutants[mutant], i) is not None for i in explained)
    return explained if is_known else frozenset()


def _is_silent_elsewhere(
    fingerprints: Fingerprints, mutant: int, differing: Mapping[int, Compared], asked: Set[int]
) -> bool:
    """Whether the mutant answers as the attempt or as the reference does, on every call that is asked."""
    return all(
        is_silent(fingerprints, mutant, i) or (i in differing and matches(fingerprints, mutant, i, differing[i]))
        for i in sorted(asked)
    )
