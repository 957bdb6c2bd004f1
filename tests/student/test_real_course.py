"""Every exercise of the course can be traced and drawn, and no right attempt is shown as wrong."""

import re

import pytest

from manyheads.student.choose_example_calls import SAME, ambiguity_of
from manyheads.student.pictures import pictures
from manyheads.student.trace import Repeated, explain_example
from manyheads.submission import Source
from tests.student.real import (
    REPOSITORY,
    example_calls,
    exercise_of,
    load_real_course,
    reference_source,
)

pytestmark = pytest.mark.recorded

IDS = [exercise.id for exercise in load_real_course().assignments[0].exercises]
# the text below the weights of the first call, for exercises whose reference computes weights;
# empty: not compared
WEIGHTS_CAPTIONS = {
    "self_attention": "1 head, as expected",
    "weight_split": "4 of 5 heads, as expected",
    "mha_by_loop": "4 of 5 heads, as expected",
    "fused_qkv": "4 of 5 heads, as expected",
    "sdpa_equivalence": "4 of 5 heads, as expected",
    "cross_attention": "",
    "grouped_query_attention": "",
    "kv_cache": "",
}
# right attempts that reshape a tensor, or compute weights in another way than the reference
VIEWS = r"\.(view|reshape|flatten|unflatten)\("
WEIGHTS = "by_hand|renormalised|float32_softmax|chunk_and_stack|flat|vmap|loop_over_heads|log"
RIGHT = [
    path
    for id_ in ("reshape_dance", "self_attention", "weight_split", "mha_by_loop", "fused_qkv")
    for path in sorted((REPOSITORY / "grader" / "right" / id_).glob("*.py"))
    if (id_ in ("reshape_dance", "fused_qkv") and re.search(VIEWS, path.read_text("utf-8")))
    or (id_ != "reshape_dance" and re.search(WEIGHTS, path.stem))
]


def assert_right(traces, source: str) -> None:
    """Assert that each call returns the right numbers, and that no operation has a warning."""
    for example, traced in traces:
        explanation = explain_example(example, traced, Source("a.py", source))
        assert explanation.is_right, explanation.returned
        assert (explanation.raised, explanation.dropped) == ("", 0)
        operations = []
        for entry in explanation.entries:
            operations += [] if isinstance(entry, Repeated) else entry.operations
        assert operations
        assert not any(operation.warning for operation in operations)


@pytest.mark.parametrize("id_", IDS)
def test_the_traces_and_pictures_of_the_reference_are_right(follow_source, id_):
    selected = example_calls(id_)
    assert {example.target for example in selected} == set(exercise_of(id_).shapes)
    assert all(ambiguity_of(example.axes) < SAME for example in selected)
    traces = follow_source(id_)
    assert_right(traces, reference_source(id_))
    drawn = pictures(traces)
    weights = [picture for picture in drawn if picture.title.startswith("your weights")]
    answers = [picture for picture in drawn if picture not in weights]
    assert {(picture.words, len(picture.panels)) for picture in answers} == {("as expected", 1)}
    assert all(picture.words.endswith(", as expected") for picture in weights)
    if id_ in WEIGHTS_CAPTIONS:
        assert weights
    words = WEIGHTS_CAPTIONS.get(id_)
    if words:
        assert (drawn[0].title, drawn[0].words) == (f"your weights in {drawn[1].title}", words)
        heads = [(panel.title, panel.kind) for panel in drawn[0].panels]
        assert heads == [(f"head {head}", "weights") for head in range(int(words[0]))]


def test_example_calls_of_tiled_attention_need_several_blocks():
    for example in example_calls("tiled_attention"):
        sizes = example.axes.sizes
        assert all(sizes[block] < sizes["T"] for block in ("bq", "bk") if block in sizes)


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.filterwarnings("ignore")
def test_a_right_attempt_gets_no_warning_and_no_picture_of_a_difference(follow_source, path):
    source = path.read_text(encoding="utf-8")
    traces = follow_source(path.parent.name, source)
    assert_right(traces, source)
    assert not any(picture.differs for picture in pictures(traces))
