"""Name the misconceptions that an attempt's answers show, held against recorded answers of mutants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from ..checks.explain import is_unfinished
from ..checks.recording import target_of
from ..diagnosis.causes import can_cause
from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.guards import REFUSES, UNDIVIDED, Guard, guards_of
from ..diagnosis.proven import proven_by
from ..result import Diagnosed
from ..submission.unwritten import UNTOUCHED, unwritten_names
from .alike import proven_by_place
from .chance import proven_by_chance
from .compared import Compared
from .copies import is_of_copies
from .devices import looks_at_no_numbers, on_another_device
from .explaining import explain, explain_functions, without_unwritten_sizes
from .facets import differs, facets_of
from .file import Fingerprints, Words
from .fingerprint import has_no_numbers
from .meaning import proven_beside, proven_by_aspect
from .pairs import Named
from .parameters import proven_by_parameters, that_follow, without_more
from .proven import proven_by_answer
from .ranks import proven_by_rank


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
    explained = explain(fingerprints, written, unexplained, asked, raised.keys())
    explained = explained or explain_functions(fingerprints, written, unexplained, asked)
    explained = without_unwritten_sizes(explained, written, unexplained, source)
    refused = _refused_by_guards(written, source)
    follows = any(i not in raised and written[i].right.raised is None for i in proven)
    if (
        refused
        and not follows
        and not _is_of_more(explained, refused, [i for i in unexplained if not answers.get(i)], answers.values())
    ):
        proven |= dict.fromkeys(refused, REFUSES)
        raised |= dict.fromkeys(refused, REFUSES)
        left = {i: e for i, e in unexplained.items() if i not in refused}
        explained = explain(fingerprints, written, left, asked - refused.keys(), raised.keys()) if left else []
    kept = {} if explained else proven_by_parameters(fingerprints, written)
    if beside := without_more(written, kept):
        differing = {i: e for i, e in beside.items() if i in unexplained and differs(fingerprints, i, e.found)}
        explained = explain(fingerprints, beside, differing, asked, raised.keys()) if differing else []
        proven = {**kept, **proven} if explained else proven
    if explained:
        proven = {**proven_beside(fingerprints, written, {name for name, _ in explained}), **proven}
    else:
        shown = {
            **proven_by_rank(written, unexplained),
            **proven_by_place(fingerprints, written, asked),
            **proven_by_aspect(fingerprints, written),
        }
        following = that_follow(written, kept, raised)
        raised = {i: name for i, name in raised.items() if i not in following}
        proven = {**kept, **shown, **{i: name for i, name in proven.items() if i not in following}}
    last = [UNTOUCHED if target_of(e.call) in empty else _proven(e, mutates) for e in unfinished.values()]
    last = [each for each in last if each]
    ids = list(dict.fromkeys(proven.values()))
    others: dict[str, tuple[str, ...]] = {}
    for name, same in explained:
        if ids and not {name, *same}.isdisjoint(ids):  # of mutants with the same answers the proof tells which it is
            continue
        others.setdefault(name, same)  # two mutants of one misconception may explain two calls
    rest = unexplained.keys() - proven.keys()
    # What a guard keeps from being run need not be explained.
    if (
        not explained
        and REFUSES not in ids
        and not can_cause(ids, rest, unexplained.keys(), lambda: _differing(fingerprints, unexplained.keys(), asked))
    ):
        return Diagnosis(tuple(named(fingerprints, i) for i in dict.fromkeys(last)), _named(fingerprints, ids))
    order = dict.fromkeys([*raised.values(), *others, *ids, *last])
    return Diagnosis(tuple(named(fingerprints, i, () if i in ids else others.get(i, ())) for i in order))


def _refused_by_guards(written: Mapping[int, Compared], source: str) -> dict[int, Guard]:
    """The calls that the reference answers, and a guard of the attempt refuses."""
    raised = {i: (target_of(e.call), e.reply.raised) for i, e in written.items() if e.right.raised is None}
    return guards_of(source, {i: (target, each) for i, (target, each) in raised.items() if each is not None})


def _is_of_more(
    explained: Sequence[Named], refused: Mapping[int, Guard], unexplained: Collection[int], answers: Collection[str]
) -> bool:
    """Whether what explains the calls says more than that allowed inputs are refused, which mutants do, too."""
    names = {name for name, _ in explained}
    if not names or names <= {*answers} or (names == {UNDIVIDED} and any(g.divides for g in refused.values())):
        return bool(names)
    return not refused.keys() >= {*unexplained}


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
