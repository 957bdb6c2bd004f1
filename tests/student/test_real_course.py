"""Every exercise of the course can be followed and drawn, and no right attempt is called wrong."""

import re

import pytest

from manyheads.student.choose_example_calls import SAME, ambiguity_of
from manyheads.student.pictures import pictures
from manyheads.student.trace import Repeated, explain_example
from manyheads.submission import Source
from tests.student.real import REPOSITORY, exercise_of, load_real_course, looks_at, reference_source

pytestmark = pytest.mark.recorded

IDS = [exercise.id for exercise in load_real_course().assignments[0].exercises]
# The words below the weights of the first call, where the reference computes weights.
HEADS = {
    "self_attention": "1 head, as expected",
    "weight_split": "4 of 5 heads, as expected",
    "mha_by_loop": "4 of 5 heads, as expected",
    "fused_qkv": "4 of 5 heads, as expected",
    "sdpa_equivalence": "4 of 5 heads, as expected",
    "cross_attention": "",
    "grouped_query_attention": "",
    "kv_cache": "",
}
# Attempts that read a tensor's memory anew, or compute weights in other ways than the reference.
VIEWS = r"\.(view|reshape|flatten|unflatten)\("
WEIGHTS = "by_hand|renormalised|float32_softmax|chunk_and_stack|flat|vmap|loop_over_heads|log"
RIGHT = [
    path
    for id_ in ("reshape_dance", "self_attention", "weight_split", "mha_by_loop", "fused_qkv")
    for path in sorted((REPOSITORY / "grader" / "right" / id_).glob("*.py"))
    if (id_ in ("reshape_dance", "fused_qkv") and re.search(VIEWS, path.read_text("utf-8")))
    or (id_ != "reshape_dance" and re.search(WEIGHTS, path.stem))
]


def assert_right(followed, source: str) -> None:
    """Assert that each call has the right numbers, and that no operation is doubted."""
    for example, traced in followed:
        explanation = explain_example(example, traced, Source("a.py", source))
        assert explanation.is_right, explanation.returned
        assert (explanation.raised, explanation.dropped) == ("", 0)
        operations = []
        for entry in explanation.entries:
            operations += [] if isinstance(entry, Repeated) else entry.operations
        assert operations
        assert not any(operation.warning for operation in operations)


@pytest.mark.parametrize("id_", IDS)
def test_the_reference_is_right_and_drawn_as_expected(follow_source, id_):
    looks = looks_at(id_)
    assert {example.target for example in looks} == set(exercise_of(id_).shapes)
    assert all(ambiguity_of(example.axes) < SAME for example in looks)
    followed = follow_source(id_)
    assert_right(followed, reference_source(id_))
    drawn = pictures(followed)
    weights = [picture for picture in drawn if picture.title.startswith("your weights")]
    answers = [picture for picture in drawn if picture not in weights]
    assert {(picture.words, len(picture.panels)) for picture in answers} == {("as expected", 1)}
    assert all(picture.words.endswith(", as expected") for picture in weights)
    assert (id_ in HEADS) <= bool(weights)
    if words := HEADS.get(id_):
        assert (drawn[0].title, drawn[0].words) == (f"your weights in {drawn[1].title}", words)
        heads = [(panel.title, panel.kind) for panel in drawn[0].panels]
        assert heads == [(f"head {head}", "weights") for head in range(int(words[0]))]


def test_a_call_with_blocks_has_several_of_them():
    for example in looks_at("tiled_attention"):
        sizes = example.axes.sizes
        assert all(sizes[block] < sizes["T"] for block in ("bq", "bk") if block in sizes)


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.filterwarnings("ignore")
def test_a_right_attempt_is_neither_doubted_nor_drawn_as_a_wrong_one(follow_source, path):
    source = path.read_text(encoding="utf-8")
    followed = follow_source(path.parent.name, source)
    assert_right(followed, source)
    assert not any(picture.differs for picture in pictures(followed))
