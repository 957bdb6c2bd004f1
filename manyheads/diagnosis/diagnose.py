"""Name the misconceptions that an attempt's replies show, compared with the fault dictionary.

`RULES` is the list of all rules in the order in which `diagnose` applies them. To add a rule, write
a function `rule(response) -> list[Candidate]`, and give it a line in `RULES` and in
docs/diagnosis.md. This module has the rules for direct evidence, guards and oracles; `match` has
those that explain the syndrome by mutants.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import replace
from typing import Literal

from ..box.worker.messages import Raised
from ..checks.explain_exceptions import is_dtype_fault, is_unfinished
from ..submission.source import UNTOUCHED, Source
from .bank import Bank, Diagnosis, misconception_in_words
from .evidence import (
    MUTATED,
    REFUSES,
    ROUNDED,
    UNDIVIDED,
    UNREGISTERED,
    Guard,
    are_rounded,
    can_cause,
    guards_of,
    misconception_of_answer,
    misconceptions_of_exceptions,
)
from .fault_dictionary import (
    BASES,
    DIRECT,
    Candidate,
    FaultDictionary,
    Response,
    evidence,
    wrong_replies,
)
from .fingerprint import has_no_numbers
from .match import (
    combined_pairs,
    exceptions_before_answers,
    exceptions_of_one_kind,
    explain,
    fixed_number_misconceptions,
    mutants,
    near_matches,
    nondeterministic_mutants,
    other_parameters,
    parametric_mutants,
    recorded_pairs,
    single_functions,
    smallest_cover,
)
from .mutants_explaining_nondeterminism import misconceptions_of_nondeterminism
from .observed_reply import (
    ObservedReply,
    device_error,
    device_misconception,
    is_moved_after_a_call,
    is_of_copies,
    needs_meta_numbers,
    without_other_directions,
)
from .oracles import shown_by_oracles, wrong_plain_numbers
from .pass_fail_dictionary import (
    HARD_CODED,
    WRONG_AXIS,
    has_written_size,
    number_of_axes,
    pass_fail_match,
    written_sizes,
)


def nondeterminism(response: Response) -> list[Candidate]:
    """Return the misconception that explains several replies to one call, or none."""
    return evidence("nondeterminism", misconceptions_of_nondeterminism(response))


def exceptions(response: Response) -> list[Candidate]:
    """Return the misconceptions that exceptions prove, or none if mutants explain the syndrome."""
    names = misconceptions_of_exceptions(response.written, response.mutates)
    if names and smallest_cover(response):
        return []
    return evidence("exception", names)


def answers(response: Response) -> list[Candidate]:
    """Return the misconceptions that single answers prove.

    A call counts only if it has no exception that proves one. A call that must be refused counts
    only if its function returns a tensor in some call: otherwise it cannot be said to accept an
    invalid input.
    """
    raised = misconceptions_of_exceptions(response.written, response.mutates)
    names = dict[int, str]()
    for i, observation in response.written.items():
        is_refused = observation.expected.raised == "refused"
        if i in raised or (is_refused and observation.function not in response.answering_functions):
            continue
        if name := misconception_of_answer(response.recording, i, observation):
            names[i] = name
    return evidence("reply", names)


def rounded_answers(response: Response) -> list[Candidate]:
    """Return the misconception of rounding, which wrong answers prove if all have few decimals."""
    if not are_rounded(observation.reply for observation in response.syndrome.values()):
        return []
    return evidence("reply", dict.fromkeys(response.syndrome, ROUNDED))


def guards(response: Response) -> list[Candidate]:
    """Return a guard that refuses allowed inputs, and candidates for the calls that pass it.

    A guard is a test of sizes that raises. The code behind it does not run, so the refused calls
    are left out when the other calls are explained. If these show a size off the wrong axis
    (WRONG_AXIS), the guard is evidence of that, too. Return none in each of these cases:

    1. No guard refuses an allowed input.
    2. An allowed call shows direct evidence that is no exception.
    3. The explanation so far says more than that a guard refuses (`_says_more`).
    4. Nothing explains the calls that pass the guard, and such a call raises without direct
       evidence: the attempt reads a size wrong.
    """
    written = response.written
    raised = dict[int, tuple[str, Raised]]()
    for i, observation in written.items():
        if observation.is_allowed and observation.reply.raised is not None:
            raised[i] = (observation.function, observation.reply.raised)
    refused = guards_of(response.source, raised)
    direct, exceptional = response.shown_by(*DIRECT), response.shown_by("exception")
    has_other_evidence = any(written[i].is_allowed for i in direct.keys() - exceptional.keys())
    if not refused or has_other_evidence or _says_more(response, refused):
        return []
    # An inverted guard lets through the inputs that it should refuse. These then fail elsewhere.
    is_inverted = any(guard.inverted for guard in refused.values())
    let_through = {i for i in response.odd_refusals if is_inverted and written[i].reply.raised}
    remainder = response.without_calls(refused.keys() | let_through)
    explanations = explain(remainder)
    raising = raised.keys() & remainder.syndrome.keys()
    if not explanations and not raising <= direct.keys():
        return []
    # With WRONG_AXIS, the guard tests the size of the wrong axis, and would be right otherwise.
    is_of_wrong_axis = any(candidate.id == WRONG_AXIS for candidate in explanations)
    id_ = WRONG_AXIS if is_of_wrong_axis else REFUSES
    return [*evidence("guard", dict.fromkeys(refused, id_)), *explanations]


def _says_more(response: Response, refused: Mapping[int, Guard]) -> bool:
    """Return whether the explanation says more than that a guard refuses allowed inputs.

    It must name at least one misconception. It then says more in each of these cases:

    1. All mutants of a misconception that it names raise in all calls that detect them. So these
       mutants refuse allowed inputs, too.
    2. It names UNDIVIDED and nothing else, a guard that refuses allowed inputs tests a remainder,
       and the attempt answers an input that it should refuse. So the guard itself shows UNDIVIDED.
    3. The syndrome has a call that no guard refused and no reply proves. So the guards do not
       account for all wrong calls.
    4. Single replies prove every misconception that it names. No guard can change these proofs.
    """
    names = {candidate.id for candidate in response.explanations}
    if any(_only_stops(response, name) for name in names):
        return True
    if names == {UNDIVIDED} and any(guard.divides for guard in refused.values()):
        to_refuse = (e for e in response.written.values() if e.expected.raised == "refused")
        if any(observation.actual.raised != "refused" for observation in to_refuse):
            return True
    by_reply = response.shown_by("reply")
    unaccounted_calls = response.syndrome.keys() - by_reply.keys() - refused.keys()
    return bool(names) and (bool(unaccounted_calls) or names <= {*by_reply.values()})


def _only_stops(response: Response, id_: str) -> bool:
    """Return whether each mutant of a misconception raises in all calls that detect it."""
    for m in response.mutants:
        if response.id(m) == id_:
            calls = (i for i in response.recording.compared_fields if not response.survives(m, i))
            replies = response.recording.answers(m, calls).values()
            if not all(reply.raised for reply in replies):
                return False
    return True


def dropout_oracles(response: Response) -> list[Candidate]:
    """Return the misconceptions that oracles show in the calls of `Response.unmatched_dropout`.

    To these calls no mutant replies as the attempt does. The oracles of each check are applied, in
    their order, to its wrong calls and all its calls with dropout. The first violated one may show
    a misconception (`shown_by_oracles`).
    """
    unmatched_calls = response.unmatched_dropout
    if not unmatched_calls:
        return []
    dropout_or_wrong = dict[int, ObservedReply]()
    for i, observation in response.written.items():
        if i in response.syndrome or is_of_copies(observation.call):
            dropout_or_wrong[i] = observation
    names = shown_by_oracles(response.recording, dropout_or_wrong)
    return evidence("oracle", {i: name for i, name in names.items() if i in unmatched_calls})


def symptoms_and_oracles(response: Response) -> list[Candidate]:
    """Return the misconceptions that the symptoms of calls, or violated oracles, show.

    Symptoms show a misconception if all mutants with the attempt's symptoms share it: they fail the
    same calls in the same way. If an oracle shows another one in the same call, the oracle counts.
    A misconception is returned only if

    1. one of the attempt's answers looks as the text of the misconception says, if it says so;
    2. it is none of the `fixed_number_misconceptions`, which only a sweep proves;
    3. it is not HARD_CODED, unless the attempt's text has an integer that is likely a size.
    """
    recording, written = response.recording, response.written
    names = pass_fail_match(response) | shown_by_oracles(recording, written)
    directions = {id_: words.shows for id_, words in recording.words.items() if words.shows}
    names = without_other_directions(names, written, directions)
    excluded = set(fixed_number_misconceptions(recording))
    if not has_written_size(response.source):
        excluded.add(HARD_CODED)
    return evidence("weak", {i: name for i, name in names.items() if name not in excluded})


Rule = Callable[[Response], list[Candidate]]
# Whether candidates of the rules before it must explain the syndrome, or must not.
When = Literal["always", "unexplained", "explained"]

RULES: tuple[tuple[Rule, When], ...] = (
    # Direct evidence: a single reply shows the misconception. It needs no explanation.
    (nondeterminism, "always"),
    (exceptions, "always"),
    (answers, "always"),
    (rounded_answers, "always"),
    # Explanations. If a rule finds one, the other rules of this kind are skipped.
    (mutants, "unexplained"),
    (nondeterministic_mutants, "unexplained"),
    (parametric_mutants, "unexplained"),
    (recorded_pairs, "unexplained"),
    (near_matches, "unexplained"),
    (exceptions_of_one_kind, "unexplained"),
    (other_parameters, "unexplained"),
    (single_functions, "unexplained"),
    (exceptions_before_answers, "unexplained"),
    (guards, "always"),
    (combined_pairs, "unexplained"),
    # Evidence of a second mistake, beside an explanation.
    (wrong_plain_numbers, "explained"),
    (dropout_oracles, "explained"),
    # Weak evidence: many mistakes have the same symptoms.
    (number_of_axes, "unexplained"),
    (written_sizes, "unexplained"),
    (symptoms_and_oracles, "unexplained"),
)


def diagnose(
    recording: FaultDictionary,
    observations: Mapping[int, ObservedReply],
    source: Source,
    bank: Bank | None = None,
) -> Diagnosis:
    """Name the misconceptions that explain an attempt's replies.

    Args:
        recording: the exercise's fault dictionary.
        observations: the replies, by the index of the recorded call.
        source: the attempt's text; it is empty if it is not at hand.
        bank: the exercise's mutants, of which two can be combined in one. None on a student's
            machine, which has no mutants.
    """
    response = _response(recording, observations, source, bank)
    for rule, when in RULES:
        state = "explained" if response.explanations else "unexplained"
        if when in ("always", state) and (candidates := rule(response)):
            response = replace(response, candidates=(*response.candidates, *candidates))
    return _diagnosis(response)


def _response(
    recording: FaultDictionary,
    observations: Mapping[int, ObservedReply],
    source: Source,
    bank: Bank | None,
) -> Response:
    """Return the response of an attempt, before any rule is applied.

    A call that reaches a function which is not written yet shows nothing about other functions, and
    is in `Response.unfinished` instead. Redundant calls are left out (`_is_redundant`).
    """
    unfinished, finished = dict[int, ObservedReply](), dict[int, ObservedReply]()
    for i, observation in observations.items():
        replies = unfinished if _is_unfinished(observation, source) else finished
        replies[i] = observation
    redundant_calls = {
        i for i, observation in finished.items() if _is_redundant(observation, finished.values())
    }
    written = {i: reply for i, reply in finished.items() if i not in redundant_calls}
    compared_calls = recording.compared_fields.keys()
    response = Response(
        recording,
        written=written,
        syndrome=wrong_replies(recording, written),
        calls=compared_calls - redundant_calls - unfinished.keys(),
        source=source,
        bank=bank,
        unfinished=unfinished,
        mutates=any(observation.reply.mutated for observation in observations.values()),
    )
    return replace(response, unmatched_dropout=_unmatched_dropout(response))


def _is_unfinished(observation: ObservedReply, source: Source) -> bool:
    """Return whether a function is not written, or the call raised in one that is not."""
    raised = observation.reply.raised
    is_empty = observation.function in source.unwritten_names
    return is_empty or bool(raised and is_unfinished(raised))


def _unmatched_dropout(response: Response) -> Set[int]:
    """Return the wrong calls with dropout active to which no mutant replies as the attempt does.

    A second mistake may change their numbers, too, and the other calls tell which mistake it is.
    Return none if there are no other wrong calls.
    """
    copies = {i for i, e in response.syndrome.items() if is_of_copies(e.call)}
    if copies == response.syndrome.keys():
        return set()
    for m in response.mutants:
        copies -= {i for i in copies if response.matches(m, i)}
    return copies


def _is_redundant(observation: ObservedReply, observations: Collection[ObservedReply]) -> bool:
    """Return whether a call adds no evidence to the evidence of other calls.

    Two kinds of calls may be redundant: one with a device error after its module moved to the meta
    device (`_is_redundant_move`), and one with meta tensors that raises
    (`_is_redundant_exception`).
    """
    of_function = (peer for peer in observations if peer.function == observation.function)
    if is_moved_after_a_call(observation.call) and device_error(observation):
        return _is_redundant_move(observation, of_function)
    if observation.reply.raised is None or not has_no_numbers(observation.expected):
        return False
    return _is_redundant_exception(observation, of_function)


def _is_redundant_move(observation: ObservedReply, of_function: Iterable[ObservedReply]) -> bool:
    """Return whether other calls show the device error of a module that moved after a first call.

    They do if the module has a device error without the first call as well. They do, too, if no
    mask stays behind: other calls show the other tensors that a module keeps.
    """
    if not device_misconception(observation):  # after a move, it is "" unless a mask stays behind
        return True
    moved_before = (peer for peer in of_function if not is_moved_after_a_call(peer.call))
    return any(map(device_error, moved_before))


def _is_redundant_exception(
    observation: ObservedReply, of_function: Iterable[ObservedReply]
) -> bool:
    """Return whether an exception in a call with meta tensors shows nothing about devices.

    It does not if the attempt reads the numbers of meta tensors, and no other device is involved.
    Nor does it if the function raises on most ordinary inputs as well: those that the reference
    accepts, and that are not on the meta device.
    """
    if needs_meta_numbers(observation) and not device_error(observation):
        return True
    allowed = (peer for peer in of_function if peer.is_allowed)
    ordinary = [peer for peer in allowed if not has_no_numbers(peer.expected)]
    raising = [peer for peer in ordinary if peer.reply.raised is not None]
    return 2 * len(raising) > len(ordinary)


def _diagnosis(response: Response) -> Diagnosis:
    """Return the misconceptions in order.

    1. Exceptions and guards come first, because they stop the code; then an argument that is
       changed in place; then explanations; then other evidence. A function that is not written
       comes last, because it shows nothing about the functions that are.
    2. Direct evidence does not count in calls that fail because layers are not registered
       (`_consequences`).
    3. If evidence shows the misconception of an explanation or one of its alternatives, only the
       one that evidence shows is named.
    4. If nothing explains the wrong values, and the evidence cannot be their cause, the evidence
       goes to `Diagnosis.also`.
    """
    consequences = _consequences(response)
    candidates = tuple(
        candidate
        for candidate in response.candidates
        if candidate.basis not in DIRECT or consequences.isdisjoint(candidate.calls)
    )
    counted = replace(response, candidates=candidates)
    # If mutants explain the whole response, they explain other parameters, too.
    excluded = {"parameters alone"} if response.explanations else set()
    proven = counted.shown_by(*(basis for basis in BASES if basis not in excluded))
    ids = dict.fromkeys(proven.values())
    alternatives = dict[str, tuple[str, ...]]()
    for candidate in response.explanations:
        # If one of several misconceptions with the same replies is proven, the others are not
        # named.
        if ids.keys().isdisjoint(candidate.ids):
            alternatives.setdefault(candidate.id, candidate.alternatives)
    order = [*counted.shown_by("exception", "guard").values()]
    if MUTATED in ids:  # it is named before the gradient that it cuts
        order.append(MUTATED)
    order += [*alternatives, *ids]
    # If layers are not registered, the attempt was not given its weights: all numbers differ.
    is_cause = bool(response.explanations or consequences) or _can_cause(response, proven)
    causes, also = (order, []) if is_cause else ([], order)
    words = response.recording.words
    named_ids = dict.fromkeys([*causes, *_misconceptions_of_unwritten(response)])
    return Diagnosis(
        tuple(misconception_in_words(words, id_, alternatives.get(id_, ())) for id_ in named_ids),
        tuple(misconception_in_words(words, id_) for id_ in dict.fromkeys(also)),
        together=tuple(alternatives) if len(alternatives) > 1 else (),
        answers=response.digest(),
    )


def _consequences(response: Response) -> set[int]:
    """Return the calls in which two dtypes meet because `.to` does not reach some layers.

    In these calls an exception or a guard is evidence. Return none unless an explanation or other
    parameters say that layers are not registered.
    """
    ids = {*response.shown_by("parameters alone", "parameters").values()}
    if UNREGISTERED not in ids.union(candidate.id for candidate in response.explanations):
        return set()
    calls = set[int]()
    for i in response.shown_by("exception", "guard"):
        raised = response.written[i].reply.raised
        if raised is not None and is_dtype_fault(raised):
            calls.add(i)
    return calls


def _misconceptions_of_unwritten(response: Response) -> list[str]:
    """Return the misconceptions that replies of functions which are not written show.

    These are the misconceptions that their exceptions prove, and UNTOUCHED for calls of an empty
    function. An id may be repeated.
    """
    names = misconceptions_of_exceptions(response.unfinished, response.mutates)
    empty = response.source.unwritten_names
    names |= {i: UNTOUCHED for i, e in response.unfinished.items() if e.function in empty}
    return [names[i] for i in response.unfinished if i in names]


def _can_cause(response: Response, proven: Mapping[int, str]) -> bool:
    """Return whether the evidence can be the cause of all wrong calls without evidence.

    `Response.odd_refusals` need no cause. If a guard is evidence, no call needs one: the code
    behind the guard does not run.
    """
    names, syndrome = {*proven.values()}, response.syndrome.keys()
    unexplained = syndrome - proven.keys() - response.odd_refusals
    return REFUSES in names or can_cause(
        names, unexplained, syndrome, lambda: _detections(response)
    )


def _detections(response: Response) -> dict[str, list[set[int]]]:
    """Return for each misconception, and each of its mutants, the calls that detect the mutant.

    Calls that the attempt rightly refuses do not count: no code after the refusal runs. A call to
    which the mutant's reply is uninformative counts as detecting it if the attempt is wrong there.
    """
    detections = dict[str, list[set[int]]]()
    informative = [
        i
        for i in response.calls
        if i in response.syndrome or response.recording.expected_reply(i).raised != "refused"
    ]
    for m in response.mutants:
        calls = {
            i
            for i in informative
            if not response.survives(m, i)
            or (i in response.syndrome and response.is_uninformative(m, i))
        }
        detections.setdefault(response.id(m), []).append(calls)
    return detections
