"""Exercises that return several tensors and pass some to the next call are graded and shown.

The course has one: kv_cache returns a pair (y, cache), and the next call gets the cache.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from manyheads.box.connection import Box
from manyheads.box.worker.messages import Call, Output, Reply, Traced
from manyheads.box.worker.result_form import Form
from manyheads.checks import assert_matches
from manyheads.checks.answer import Answer
from manyheads.checks.explain_exceptions import kind_name
from manyheads.checks.hidden_check import CheckFailed
from manyheads.checks.runner import Implementation, LocalRunner
from manyheads.course import load_course
from manyheads.diagnosis.recording_file import read
from manyheads.student.choose_example_calls import Example, examples
from manyheads.student.pictures import pictures_of
from manyheads.student.trace import Explained, explain_example, follow
from manyheads.submission import Source
from tests.diagnosis.both_sides import named_misconceptions
from tests.make import edit_text

RETURNED = "return self.proj(y), (k, v)"
PAIR = "a pair (y, cache) was expected"


def test_a_list_and_a_cache_of_any_type_are_accepted(sides):
    result = sides.grade_attempt("kv_cache", {RETURNED: "return [self.proj(y), {0: k, 1: v}]"})
    assert [check.evidence for check in result.checks if check.outcome != "passed"] == []


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("None", f"{PAIR}; yours returned None: is a return missing at its end?"),
        ("{'y': x, 'cache': (k, v)}", f"{PAIR}; yours returned a dict"),
        (
            "None, (k, v)",
            "a tensor was expected as y; yours returned None: is a return missing at its end?",
        ),
        (
            "(self.proj(y), (k, v)) if cache is None else self.proj(y)",
            f"{PAIR} of call 2; yours returned a tensor alone",
        ),
    ],
)
def test_the_evidence_names_a_wrong_structure(sides, returned, sentence):
    result = sides.grade_attempt("kv_cache", {RETURNED: f"return {returned}"})
    assert {check.evidence for check in result.checks if check.id == "shape"} == {sentence}


def test_an_ignored_cache_is_diagnosed(sides):
    ignored = {"B, T, C = x.shape": "cache = None\n        B, T, C = x.shape"}
    assert named_misconceptions(sides.grade_attempt("kv_cache", ignored)) == ["cache_ignored"]


@pytest.mark.recorded
def test_only_the_judged_parts_of_sequences_are_recorded(sides):
    recorded = read(sides.exercise("kv_cache").fingerprints)
    chunks = [
        recorded.expected_reply(i).outputs
        for i, call in enumerate(recorded.calls)
        if len(call.steps) > 1
    ]
    assert any(output.projections for outputs in chunks for output in outputs[::2])
    assert not any(output.projections for outputs in chunks for output in outputs[1::2]), (
        "the content of a cache is up to the attempt"
    )


def test_an_expected_part_may_be_none():
    forms = {"spread": Form("tuple", ("mean", "spread"), (Form(), Form()))}
    x = torch.ones(3, 1)

    def ask(function: Callable[[torch.Tensor], object]) -> object:
        return Implementation(LocalRunner({"spread": function}), forms=forms).call("spread", x)

    spread_none, spread_tensor = (
        ask(lambda x, spread=spread: (x.mean(-1), spread)) for spread in (None, torch.zeros(3))
    )
    assert_matches(spread_none, spread_none)
    with pytest.raises(CheckFailed, match="spread should be None; yours is a tensor"):
        assert_matches(spread_tensor, spread_none)
    with pytest.raises(CheckFailed, match="spread should be a tensor; yours is None"):
        assert_matches(spread_none, spread_tensor)


# Classes that pretend to be a pair.
LYING = """\
class Lies(tuple):
    def __iter__(self):
        raise SystemExit(0)

    def __len__(self):
        return 2

class Pretends:
    __class__ = tuple

    def __iter__(self):
        return iter((torch.ones(1), None))

def named(name):
    return type(name, (), {})()

class CachedSelfAttention"""


@pytest.mark.parametrize(
    ("returned", "expected_text"),
    [
        ("Lies((x,))", "a pair (y, cache) was expected; yours returned a tuple of 1"),
        ("Pretends()", "yours returned an object of another type"),
        ("(x,) * 3_000_000", "yours returned a tuple of 9 or more"),
        ("(named('in place of 0: a secret'), None)", "yours returned an object of another type"),
        ("(named('(opaque)'), None)", "something that is not an answer"),
        ("(x, torch.ones(1 << 33))", "more memory was asked for"),
    ],
)
def test_a_deceptive_or_too_large_structure_earns_nothing(sides, returned, expected_text):
    result = sides.grade_attempt(
        "kv_cache", {"class CachedSelfAttention": LYING, RETURNED: f"return {returned}"}
    )
    evidence = " ".join(check.evidence for check in result.checks)
    assert expected_text in evidence
    # the name of a type is chosen by the attempt, so it could carry a message
    assert "secret" not in evidence
    assert result.score == 0
    assert {check.outcome for check in result.checks} <= {"failed", "error", "crashed"}


OTHER_TYPE = "an object of another type"


@pytest.mark.parametrize(
    ("kind", "description"),
    [
        ("tuple of 57", OTHER_TYPE),
        ("list of \U0001d7d7", OTHER_TYPE),
        ("sparse_31415 float32 tensor", OTHER_TYPE),
        ("strided a_secret tensor", OTHER_TYPE),
        ("builtin_function_or_method", "a method: are its brackets missing?"),
        ("Softmax", "a layer, Softmax: it is made, and not called"),
        ("sparse_coo float32 tensor", "a sparse_coo float32 tensor"),
        ("strided complex64 tensor", "a strided complex64 tensor"),
    ],
)
def test_only_known_type_names_are_shown(kind, description):
    assert kind_name(kind) == description


@pytest.mark.parametrize(
    "tensor", [None, torch.ones(1)], ids=["a type named after a dtype", "a forged reply"]
)
def test_an_answer_that_is_no_tensor_has_no_dtype(tensor):
    answer = Answer(Call("f"), Reply((Output("float32", tensor, shape=(1,)),)))
    with pytest.raises(CheckFailed, match=f"a tensor was expected; yours returned {OTHER_TYPE}"):
        assert answer.dtype


ExplainedExamples = list[tuple[Example, Traced, Explained]]


def explain_examples(repository: Path, box: Box, returned: str) -> ExplainedExamples:
    """Return each example of kv_cache with its trace and explanation.

    Args:
        returned: the expression that the attempt returns.
    """
    course = load_course(repository)
    kv_cache = next(exercise for exercise in course.exercises if exercise.id == "kv_cache")
    solution = kv_cache.solution.read_text(encoding="utf-8")
    text = edit_text(solution, (RETURNED, f"return {returned}"))
    source, limits = Source(f"{kv_cache.stem}.py", text), course.limits.for_worker()
    outcome = follow(box, limits, source, examples(kv_cache, read(kv_cache.fingerprints)))
    return [
        (example, traced, explain_example(example, traced, source))
        for example, traced in outcome.traced_examples
    ]


@pytest.mark.recorded
def test_a_sequence_is_one_example_with_a_picture_of_every_call(repository, box):
    first_example, *_, (example, traced, sequence_explanation) = explain_examples(
        repository, box, "(self.proj(y), (k[:, :, :0], v[:, :, :0]))"
    )
    assert first_example[2].returned == "returns y (B, T, C): the right numbers"
    assert ", then (x, cache)" in sequence_explanation.title
    assert "y of call 1 (B, T, C): the right numbers" in sequence_explanation.returned
    assert "y of call 2" in sequence_explanation.returned
    assert not sequence_explanation.is_right
    first, second = [
        picture for picture in pictures_of(example, traced) if "y of call" in picture.title
    ]
    assert first.caption.endswith(": y of call 1: as expected")
    assert ": y of call 2: the largest difference is" in second.caption


@pytest.mark.recorded
def test_the_page_explains_a_wrong_structure(repository, box):
    example, traced, explanation = explain_examples(repository, box, "self.proj(y)")[0]
    sentence = "a pair (y, cache) was expected; yours returned a tensor alone"
    assert explanation.returned == f"returns something else: {sentence}"
    assert pictures_of(example, traced)[-1].caption.endswith(": y: yours is no tensor")
