"""What heads attend to in a sentence: the trained weights go into an attempt's module, and its
weights are drawn.
"""

import sys
import types

import pytest
import torch

from manyheads.box.worker.messages import TraceCall
from manyheads.box.worker.trace_operations import trace
from manyheads.checks.runner import cast
from manyheads.student.pictures import Picture, pictures
from manyheads.student.trace import TABLES, TIMES
from manyheads.student.train_model import sentence_examples
from tests.student.real import course, exercise_of, looks_at, solution

SENTENCE = "The keys to the cabinet were on the table"
TRAINED = [exercise.id for exercise in course().assignments[0].exercises if exercise.train]


def draw_pictures(id_: str, source: str, monkeypatch: pytest.MonkeyPatch) -> list[Picture]:
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(source, "a.py", "exec", dont_inherit=True), vars(module))
    examples = [*looks_at(id_)[:1], *sentence_examples(exercise_of(id_))]
    return pictures(
        [
            (
                example,
                trace(
                    vars(module), TraceCall(cast(example.call, "float32"), TABLES, TIMES), "a.py"
                ),
            )
            for example in examples
        ]
    )


@pytest.mark.parametrize("id_", TRAINED)
def test_the_sentence_comes_first_and_the_solutions_heads_are_the_references(id_, monkeypatch):
    first, second, *_ = draw_pictures(id_, solution(id_), monkeypatch)
    for block, picture in enumerate((first, second), 1):
        verdict = "4 heads, and the output is as expected"
        assert picture.caption == f"“{SENTENCE}”, block {block} of a trained model: {verdict}"
        assert [word for word in picture.tokens if word] == SENTENCE.split()
        assert picture.tokens.index("cabinet") == SENTENCE.index("cabinet") + 3
        for panel in picture.panels:
            assert panel.values.shape == (len(SENTENCE), len(SENTENCE))
            torch.testing.assert_close(panel.values.sum(-1), torch.ones(len(SENTENCE)))
            assert not panel.values.triu(1).any()
    if id_ == "fused_qkv":  # a head of the first block has learned to look one character back
        assert max(panel.values.diagonal(-1).mean().item() for panel in first.panels) > 0.8


def test_wrong_heads_are_not_the_references(monkeypatch):
    wrong_source = solution("fused_qkv").replace("math.sqrt(self.head_dim)", "math.sqrt(C)")
    assert wrong_source != solution("fused_qkv")
    for picture in draw_pictures("fused_qkv", wrong_source, monkeypatch)[:2]:
        assert picture.words == "the weights of 4 of 4 heads are not as expected"
        assert picture.differs
        titles = [panel.title for panel in picture.panels]
        assert [title.partition(", ")[2] for title in titles] == ["expected", "yours"] * 2
        for expected, yours in zip(picture.panels[::2], picture.panels[1::2], strict=True):
            # a larger divisor makes shares alike
            assert expected.values.amax(1).mean() > yours.values.amax(1).mean()


def test_right_weights_that_mix_wrong_values_are_shown_alone(
    monkeypatch,
):
    wrong_source = solution("fused_qkv").replace("y = weights @ v", "y = weights @ k")
    verdicts = [
        picture.words for picture in draw_pictures("fused_qkv", wrong_source, monkeypatch)[:2]
    ]
    assert verdicts == ["4 heads, and the output is not as expected"] * 2


def test_an_attempt_that_raises_has_no_heads(monkeypatch):
    source = "from torch import nn\nclass CausalSelfAttention(nn.Module):\n    pass\n"
    assert [picture.tokens for picture in draw_pictures("fused_qkv", source, monkeypatch)] == [()]


def test_an_exercise_without_a_module_has_no_sentence():
    assert sentence_examples(exercise_of("causal_mask")) == []
