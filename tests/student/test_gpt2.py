"""A student's attention in a GPT-2 with random weights, computed in the real box."""

import pytest
import torch
from tokenizers import Tokenizer

from manyheads.box.worker.limits import Limits
from manyheads.files import CourseFault
from manyheads.student.check_and_keep_result import OwnAttempt
from manyheads.student.gpt2 import compare_with_own, gpt2_example, own_attention, plot_problem
from manyheads.student.gpt2_weights import (
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    PublishedGPT2,
    read_model,
    read_sizes,
)
from manyheads.student.trace import Followed
from manyheads.submission import Source
from tests.make import REPOSITORY
from tests.student.gpt2_files import VOCABULARY, random_model, save_files
from tests.student.real import exercise_of, load_real_course, reference_source

IDS = list(range(1, 12))
FUSED, SDPA = "fused_qkv", "sdpa_equivalence"


@pytest.fixture(scope="module")
def transformers_model():
    """Return a random model of transformers."""
    return random_model()


@pytest.fixture(scope="module")
def published(transformers_model, tmp_path_factory) -> PublishedGPT2:
    """Return the same model and a tokenizer, read from their files."""
    folder = save_files(tmp_path_factory.mktemp("gpt2"), transformers_model)
    gpt2 = read_model(read_sizes(folder / CONFIG), folder / WEIGHTS)
    return PublishedGPT2(gpt2, Tokenizer.from_file(str(folder / TOKENIZER)))


@pytest.fixture(scope="module")
def model(published):
    """Return the same model without the tokenizer."""
    return published.model


@pytest.fixture(scope="module")
def expected_logits(transformers_model) -> torch.Tensor:
    """Return the logits of transformers for IDS, (T, V)."""
    with torch.no_grad():
        return transformers_model(torch.tensor([IDS])).logits[0]


def test_our_own_model_gives_the_logits_of_transformers(model, expected_logits):
    hidden = model.hidden(torch.tensor([IDS]), model.attention)
    assert expected_logits.shape == (len(IDS), len(VOCABULARY))
    torch.testing.assert_close(model.logits(hidden)[0], expected_logits, rtol=0, atol=1e-4)


@pytest.fixture
def logits_with(box, model):
    """Return a function: the logits with the attention of a source, (T, V)."""

    def logits(exercise_id: str, text: str) -> torch.Tensor:
        source = Source("07_fused_qkv.py", text)
        exercise = exercise_of(exercise_id)
        with own_attention(box, Limits(), source, exercise, model) as attention:
            return model.logits(model.hidden(torch.tensor([IDS]), attention))[0]

    return logits


def right_source(name: str) -> str:
    """Return the text of a right attempt at exercise 07 in another style."""
    return (REPOSITORY / "grader" / "right" / FUSED / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("exercise_id", "text"),
    [
        pytest.param(FUSED, reference_source(FUSED), id="the solution of 07"),
        pytest.param(SDPA, reference_source(SDPA), id="the solution of 08"),
        *(
            pytest.param(FUSED, right_source(name), id=name)
            for name in ("loop_over_heads", "einsum", "nanogpt_bias_buffer")
        ),
    ],
)
def test_a_right_attention_gives_the_logits_of_transformers(
    logits_with, expected_logits, exercise_id, text
):
    actual = logits_with(exercise_id, text)
    torch.testing.assert_close(actual, expected_logits, rtol=0, atol=1e-4)


MASK = ".masked_fill(~self.visible[:T, :T], -math.inf)"
SCALE = "math.sqrt(self.head_dim)"
VIEW = "q = q.view(B, T, self.n_head, self.head_dim).transpose(1, 2)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(MASK, "", id="no mask"),
        pytest.param(SCALE, "math.sqrt(C)", id="the root of C"),
        pytest.param(VIEW, "q = q.reshape(B, self.n_head, T, -1)", id="a wrong view"),
    ],
)
def test_a_famous_mistake_gives_other_logits(logits_with, expected_logits, old, new):
    reference = reference_source(FUSED)
    assert old in reference
    actual = logits_with(FUSED, reference.replace(old, new))
    assert actual.shape == expected_logits.shape
    assert (actual - expected_logits).abs().max() > 0.1


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        pytest.param(
            "self.qkv",
            "self.c_attn",
            "GPT-2's weights do not fit: your CausalSelfAttention has no qkv.weight of the shape "
            "(195, 65); it has c_attn.weight of (195, 65), which is written on line {}.",
            id="renamed layers",
        ),
        pytest.param(
            "nn.Linear(n_embd, n_embd, bias=False)",
            "nn.Linear(n_embd, 48, bias=False)",
            "GPT-2's weights do not fit: your CausalSelfAttention has no proj.weight of the shape "
            "(65, 65); it has proj.weight of (48, 65), which is written on line {}.",
            id="another size",
        ),
        pytest.param(
            "bias=False)\n        self.proj = nn.Linear(n_embd, n_embd, bias=False)",
            "bias=True)\n        self.out = nn.Linear(n_embd, n_embd, bias=False)",
            "GPT-2's weights do not fit: your CausalSelfAttention has no proj.weight of the shape "
            "(65, 65); it has out.weight of (65, 65), which is written on line",
            id="a bias before a renamed layer",
        ),
        pytest.param(
            "return self.resid_dropout(self.proj(y))",
            "raise RuntimeError('no more')",
            "Your code raised RuntimeError on line {}, in block 1 of GPT-2. Python says: no more",
            id="an exception",
        ),
        pytest.param(
            "return self.resid_dropout(self.proj(y))",
            "return self.proj(y), weights",
            "CausalSelfAttention returns a tuple, where a tensor (B, T, C) is expected, in block "
            "1 of GPT-2.",
            id="a tuple",
        ),
        pytest.param(
            "return self.resid_dropout(self.proj(y))",
            "return self.proj(y)[:, :3]",
            "CausalSelfAttention returns float32 (1, 3, 65), where (B, T, C) is expected: "
            "float32 (1, 11, 65), in block 1 of GPT-2.",
            id="another shape",
        ),
        pytest.param(
            "return self.resid_dropout(self.proj(y))",
            "return self.proj(y).double()",
            "CausalSelfAttention returns float64 (1, 11, 65), where (B, T, C) is expected: "
            "float32 (1, 11, 65), in block 1 of GPT-2.",
            id="another dtype",
        ),
        pytest.param(
            "return self.resid_dropout(self.proj(y))",
            "return self.proj(y).log()",
            "CausalSelfAttention returns NaN or infinite numbers, and GPT-2 can write nothing with "
            "these, in block 1 of GPT-2.",
            id="NaN",
        ),
        pytest.param(
            "class CausalSelfAttention",
            "@nowhere\nclass CausalSelfAttention",
            "Your code raised NameError on line {}",
            id="a class that is not defined",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence_with_its_line(logits_with, old, new, sentence):
    reference = reference_source(FUSED)
    assert old in reference
    text = reference.replace(old, new)
    with pytest.raises(CourseFault) as stopped:
        logits_with(FUSED, text)
    line = next(
        number for number, code in enumerate(text.splitlines(), 1) if new.split("\n")[0] in code
    )
    message, next_step = str(stopped.value).split("\n")
    assert message.startswith(sentence.format(line))
    assert next_step == "Next: course check"


def test_a_line_of_a_notebook_is_named_in_its_cell(box, model):
    text = reference_source(FUSED).replace("self.qkv", "self.c_attn")
    class_line, line = (
        text[: text.index(code)].count("\n") + 1 for code in ("\nclass ", "self.c_attn = ")
    )
    source = Source("07_fused_qkv.ipynb", text, cells=(1, class_line))
    cell_line = f"line {line - class_line + 1} of code cell 2"
    with pytest.raises(CourseFault, match=f"which is written on {cell_line}"):
        with own_attention(box, Limits(), source, exercise_of(FUSED), model):
            pass


def test_logits_that_are_not_finite_have_a_sentence(box, published):
    """Every output of the module is finite, but the sum of two outputs is not."""
    right_end = "return self.resid_dropout(self.proj(y))"
    text = reference_source(FUSED).replace(right_end, "return torch.full_like(x, 3e38)")
    exercise = exercise_of(FUSED)
    source = Source("07_fused_qkv.py", text)
    attempt = OwnAttempt(load_real_course(), exercise, source, is_started=True)
    with pytest.raises(CourseFault) as stopped:
        compare_with_own(box, attempt, published, "the table")
    assert str(stopped.value) == (
        "With your attention, GPT-2's logits are NaN or infinite.\nNext: course check"
    )


@pytest.mark.parametrize(
    ("style", "sentence"),
    [
        pytest.param("einsum", "", id="a table for each head"),
        pytest.param(
            "loop_over_queries",
            "No heads of GPT-2 are drawn: your module makes no table of weights for each head. It "
            "can still be right.",
            id="a row for each query",
        ),
    ],
)
def test_plot_says_if_no_weights_can_be_seen(follow_source, published, style, sentence):
    example = gpt2_example(exercise_of(FUSED), published)
    text = right_source(style)
    traced_examples = follow_source(FUSED, text, more_examples=[example])
    followed = Followed(tuple(traced_examples[-1:]))
    assert followed.traced_examples[0][0] is example
    assert plot_problem(followed, Source("07_fused_qkv.py", text)) == sentence
