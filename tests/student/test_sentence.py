"""What heads attend to in a sentence: the trained weights go into an attempt's module, and its weights are drawn."""

import sys
import types

import pytest
import torch

from manyheads.box.worker.answers import Traced
from manyheads.box.worker.messages import TraceCall
from manyheads.box.worker.tracing import trace
from manyheads.checks.cast import cast
from manyheads.student.follow import TABLES, TIMES
from manyheads.student.plot_content import Band, summary
from manyheads.student.sentence import SentenceExample, every_band, sentence_examples
from tests.student.real import course, exercise_of, solution

SENTENCE = "The keys to the cabinet were on the table"
TRAINED = [exercise.id for exercise in course().assignments[0].exercises if exercise.train]


def looked(id_: str, source: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[SentenceExample], list[Traced]]:
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(source, "a.py", "exec", dont_inherit=True), vars(module))
    examples = sentence_examples(exercise_of(id_))
    traced = [
        trace(vars(module), TraceCall(cast(example.call, "float32"), TABLES, TIMES), "a.py") for example in examples
    ]
    return examples, traced


def drawn(id_: str, source: str, monkeypatch: pytest.MonkeyPatch) -> list[Band]:
    examples, traced = looked(id_, source, monkeypatch)
    return every_band(list(zip(examples, traced, strict=True)))


@pytest.mark.parametrize("id_", TRAINED)
def test_the_solutions_heads_are_the_references(id_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = drawn(id_, solution(id_), monkeypatch)
    assert [band.title for band in shown] == [
        f"“{SENTENCE}”, block {block} of a trained model: your heads, as the reference's" for block in (1, 2)
    ]
    for band in shown:
        assert "".join(band.labels) == SENTENCE.replace(" ", "␣")
        for panel in band.panels:
            assert panel.values.shape == (len(SENTENCE), len(SENTENCE))
            torch.testing.assert_close(panel.values.sum(-1), torch.ones(len(SENTENCE)))
            assert not panel.values.triu(1).any()


def test_a_head_of_the_first_block_has_learned_to_look_one_character_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = drawn("fused_qkv", solution("fused_qkv"), monkeypatch)[0]
    back = [panel.values.diagonal(-1).mean().item() for panel in first.panels if panel.values is not None]
    assert max(back) > 0.8


def test_wrong_heads_are_not_the_references(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = solution("fused_qkv").replace("math.sqrt(self.head_dim)", "math.sqrt(C)")
    assert wrong != solution("fused_qkv")
    assert summary(drawn("fused_qkv", wrong, monkeypatch)) == [
        f"“{SENTENCE}”, block {block} of a trained model: your heads, not as the reference's: 4 heads"
        for block in (1, 2)
    ]


def test_an_attempt_that_raises_has_no_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from torch import nn\nclass CausalSelfAttention(nn.Module):\n    pass\n"
    assert drawn("fused_qkv", source, monkeypatch) == []


def test_an_exercise_without_a_module_has_no_sentence() -> None:
    assert sentence_examples(exercise_of("causal_mask")) == []
