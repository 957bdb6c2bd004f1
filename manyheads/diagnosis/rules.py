"""All rules by which a misconception is named, in the order in which they are applied.

To add a rule, write a function `rule(response) -> list[Candidate]`, and give it a line in `RULES`
and in docs/diagnosis.md. This module has the rules for direct evidence, guards and oracles; `match`
has those that explain the syndrome by mutants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from ..box.worker.messages import Raised
from .evidence import (
    REFUSES,
    ROUNDED,
    UNDIVIDED,
    Guard,
    are_rounded,
    guards_of,
    proven_by_answer,
    proven_by_exceptions,
)
from .fault_dictionary import DIRECT, Candidate, Response, evidence
from .match import (
    combined_pairs,
    exceptions_before_answers,
    exceptions_of_one_kind,
    explain,
    mutants,
    near_matches,
    nondeterministic_mutants,
    of_one_number,
    other_parameters,
    parametric_mutants,
    recorded_pairs,
    single_functions,
    smallest_cover,
)
from .nondeterminism import proven_by_chance
from .observed_reply import ObservedReply, is_of_copies, without_other_directions
from .oracles import plain_numbers, shown_by_oracles
from .pass_fail import (
    HARD_CODED,
    has_written_size,
    number_of_axes,
    pass_fail_match,
    written_sizes,
)


def nondeterminism(response: Response) -> list[Candidate]:
    """Return the misconception that explains several replies to one call."""
    return evidence("nondeterminism", proven_by_chance(response))


def exceptions(response: Response) -> list[Candidate]:
    """Return the misconceptions that exceptions prove, or none if mutants explain everything."""
    names = proven_by_exceptions(response.written, response.mutates)
    if names and smallest_cover(response):
        return []
    return evidence("exception", names)


def answers(response: Response) -> list[Candidate]:
    """Return the misconceptions that single answers prove.

    A call with an exception that proves one is left out. A function that never returns a tensor
    cannot be said to accept an invalid input.
    """
    raised = proven_by_exceptions(response.written, response.mutates)
    names = dict[int, str]()
    for i, observation in response.written.items():
        is_refused = observation.expected.raised == "refused"
        if i in raised or (is_refused and observation.function not in response.answering):
            continue
        if name := proven_by_answer(response.recording, i, observation):
            names[i] = name
    return evidence("reply", names)


def rounded_answers(response: Response) -> list[Candidate]:
    """Return the misconception that wrong answers with few decimals prove."""
    if not are_rounded(observation.reply for observation in response.syndrome.values()):
        return []
    return evidence("reply", dict.fromkeys(response.syndrome, ROUNDED))


def guards(response: Response) -> list[Candidate]:
    """Return a guard that refuses allowed inputs, and candidates for the calls behind it.

    A guard is a test of sizes that raises. The code behind it does not run, so the refused calls
    are left out. Return none if the explanation says more than that, or if other direct evidence
    comes from an allowed call. Return none if calls that pass the guard stop in other lines, too:
    the attempt reads a size wrong.
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
    remainder = response.without(refused.keys() | let_through)
    behind = explain(remainder)
    stopped = raised.keys() & remainder.syndrome.keys()
    if not behind and not stopped <= direct.keys():
        return []
    return [*evidence("guard", dict.fromkeys(refused, REFUSES)), *behind]


def _says_more(response: Response, refused: Mapping[int, Guard]) -> bool:
    """Return whether the explanation says more than that a guard refuses allowed inputs.

    Mutants refuse allowed inputs, too. The guard may also be wrong in the same way as they are: it
    tests a remainder, although the attempt does not refuse every input that it should.
    """
    names = {candidate.id for candidate in response.explanations}
    if any(_only_stops(response, name) for name in names):
        return True
    by_reply = response.shown_by("reply")
    if names == {UNDIVIDED} and any(guard.divides for guard in refused.values()):
        to_refuse = (e for e in response.written.values() if e.expected.raised == "refused")
        if any(observation.actual.raised != "refused" for observation in to_refuse):
            return True
    leaves_calls = not refused.keys() >= response.syndrome.keys() - by_reply.keys()
    return bool(names) and (leaves_calls or names <= {*by_reply.values()})


def _only_stops(response: Response, id_: str) -> bool:
    """Return whether each mutant of a misconception raises in all calls that detect it."""
    for m in response.mutants:
        if response.id(m) == id_:
            calls = (i for i in response.recording.facets if not response.survives(m, i))
            replies = response.recording.answers(m, calls).values()
            if not all(reply.raised for reply in replies):
                return False
    return True


def dropout_oracles(response: Response) -> list[Candidate]:
    """Return for dropout calls to which no mutant has the attempt's reply what oracles show.

    The oracles of each check are applied, in their order, to its wrong calls and all its dropout
    calls. The first violated one may show a misconception (`shown_by_oracles`).
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
    """Return the misconception that all mutants with the same symptoms share.

    They fail the same calls in the same way, or violate the same oracle. If the text of the
    misconception says how its answers look, the attempt's answers must look like that. A fixed
    number is left out, because only a sweep proves it; so is a fixed size if the text has none.
    """
    recording, written = response.recording, response.written
    names = pass_fail_match(response) | shown_by_oracles(recording, written)
    directions = {id_: words.shows for id_, words in recording.words.items() if words.shows}
    names = without_other_directions(names, written, directions)
    excluded = set(of_one_number(recording))
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
    (plain_numbers, "explained"),
    (dropout_oracles, "explained"),
    # Weak evidence: many mistakes have the same symptoms.
    (number_of_axes, "unexplained"),
    (written_sizes, "unexplained"),
    (symptoms_and_oracles, "unexplained"),
)
