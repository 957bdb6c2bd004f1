"""What is recorded of two mistakes at once."""

from manyheads.checks.implementation import LocalRunner
from manyheads.diagnosis.bank import load_bank
from manyheads.diagnosis.pair_answers import brief
from manyheads.diagnosis.recording_file import read
from tests.diagnosis.both_sides import Sides


def test_what_is_recorded_of_pairs_is_what_both_faults_together_answer(sides: Sides) -> None:
    loop = sides.exercise("mha_by_loop")
    recorded, bank = read(loop.fingerprints), load_bank(loop)
    pairs, tried = recorded.pairs.at(recorded.pairs.answers.numbers.abs().sum(1) > 0), 0
    for row in range(0, len(pairs.first), len(pairs.first) // 40):
        first, second, call = (int(each[row]) for each in (pairs.first, pairs.second, pairs.probe))
        assert (bank.mutants[first].id, bank.mutants[second].id) == tuple(
            recorded.mutants[m].id for m in (first, second)
        )
        together = bank.combine(bank.mutants[first], bank.mutants[second])
        if together is not None:
            reply = LocalRunner(together, only_values=True).execute(recorded.calls[call])
            tried += 1
            assert pairs.answers.at([row]).agree_with(brief(reply)).item()
    assert tried > 20
