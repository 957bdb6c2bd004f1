"""The attention weights of an attempt's module, with trained parameters, drawn for a sentence."""

import pytest
import torch

from manyheads.student.train_model import sentence_examples
from tests.student.real import exercise_of, load_real_course, reference_source

SENTENCE = "The keys to the cabinet were on the table"
# exercises with a module that is trained
TRAINED = [
    exercise.id for exercise in load_real_course().assignments[0].exercises if exercise.train
]


@pytest.fixture
def draw_sentence(draw):
    """Return a function that draws the pictures of a source, those of the sentence first."""
    return lambda id_, source: draw(id_, source, more_examples=sentence_examples(exercise_of(id_)))


@pytest.mark.parametrize("id_", TRAINED)
def test_the_heads_of_the_reference_are_drawn_as_expected(draw_sentence, id_):
    drawn = draw_sentence(id_, reference_source(id_))
    for block, picture in enumerate(drawn[:2], 1):
        verdict = "4 heads, and the output is as expected"
        assert picture.caption == f"“{SENTENCE}”, block {block} of a trained model: {verdict}"
        assert [word for word in picture.tokens if word] == SENTENCE.split()
        assert (
            picture.tokens.index("cabinet") == SENTENCE.index("cabinet") + 3
        )  # the label is at the middle letter
        for panel in picture.panels:
            assert panel.values.shape == (len(SENTENCE), len(SENTENCE))
            torch.testing.assert_close(panel.values.sum(-1), torch.ones(len(SENTENCE)))
            assert not panel.values.triu(1).any()
    if id_ == "fused_qkv":  # a head of the first block has learned to look one character back
        assert max(panel.values.diagonal(-1).mean().item() for panel in drawn[0].panels) > 0.8


@pytest.mark.parametrize(
    ("old", "new", "caption", "panel_titles"),
    [
        (
            "math.sqrt(self.head_dim)",
            "math.sqrt(C)",
            "the weights of 4 of 4 heads are not as expected",
            ["expected", "yours"] * 2,
        ),
        (
            "y = weights @ v",
            "y = weights @ k",
            "4 heads, and the output is not as expected",
            [""] * 4,
        ),
    ],
)
def test_the_caption_says_whether_weights_or_values_are_wrong(
    draw_sentence, old, new, caption, panel_titles
):
    source = reference_source("fused_qkv")
    assert old in source
    for picture in draw_sentence("fused_qkv", source.replace(old, new))[:2]:
        assert picture.words == caption
        assert [panel.title.partition(", ")[2] for panel in picture.panels] == panel_titles


def test_no_heads_are_drawn_for_an_attempt_that_raises(draw_sentence):
    source = "from torch import nn\nclass CausalSelfAttention(nn.Module):\n    pass\n"
    assert {picture.tokens for picture in draw_sentence("fused_qkv", source)} == {()}


def test_an_exercise_without_a_module_has_no_sentence_examples():
    assert sentence_examples(exercise_of("causal_mask")) == []
