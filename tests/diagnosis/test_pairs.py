"""Two mistakes are named if one explains the wrong numbers and the other the changed argument."""

import pytest
import torch

from manyheads.box.worker.messages import Call, Output, Reply
from manyheads.diagnosis.diagnose import diagnose
from manyheads.diagnosis.fault_dictionary import FaultDictionary, PublicCheck, RecordedMutant
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.observed_reply import observe_reply
from manyheads.submission.source import NO_TEXT

RIGHT, WRONG = torch.ones(3), torch.zeros(3)
CALLS = tuple(Call("doubled", (torch.full((3,), float(number)),)) for number in range(3))


def reply_with_mutations(numbers: torch.Tensor, *mutated: str) -> Reply:
    """Return a reply with these numbers; mutated: the arguments changed in place."""
    return Reply((Output("tensor", numbers, (3,)),), mutated=mutated)


@pytest.mark.parametrize("last_ids", [["mutated", "scale"], ["scale", "mutated"]])
def test_a_wrong_scale_and_a_mutation_are_both_named_in_any_order_of_the_mutants(last_ids) -> None:
    fields = {"reply_fields": ("outputs", "mutated"), "oracle_uses": ()}
    check = PublicCheck(id="", title="", layer=1, hint="", points=1, calls=(0, 1, 2), **fields)
    replies = [
        *map(
            fingerprint_of,
            (
                reply_with_mutations(RIGHT),
                reply_with_mutations(WRONG),
                reply_with_mutations(RIGHT, "args.0"),
            ),
        )
    ]
    mutants = [RecordedMutant("scale", (1, 1, 1))]
    mutants += [RecordedMutant(id_, (2, 2, 2)) for id_ in last_ids]
    outputs, recorded = ((RIGHT,),) * 3, [replies] * 3
    recording = FaultDictionary("", "", (check,), CALLS, outputs, recorded, (*mutants,), {})
    observations = {
        index: observe_reply(call, replies[0], (RIGHT,), reply_with_mutations(WRONG, "args.0"))
        for index, call in enumerate(CALLS)
    }
    named = diagnose(recording, observations, NO_TEXT).named
    assert [candidate.id for candidate in named] == ["scale", "mutated"]
