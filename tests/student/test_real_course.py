"""Every exercise of the course can be followed and drawn: the reference's answers are right, and
nothing is doubted.
"""

import re

import pytest

from manyheads.diagnosis.recording_file import read
from manyheads.student.choose_example_calls import SAME, ambiguity_of, examples
from manyheads.student.pictures import pictures
from manyheads.student.trace import TABLES, TIMES, Explained, Operation, Repeated
from tests.student.real import (
    REPOSITORY,
    course,
    exercise_of,
    looks_at,
    solution,
)

pytestmark = pytest.mark.recorded

IDS = [exercise.id for exercise in course().assignments[0].exercises]
# Attempts that read a tensor's memory anew, in every way that is right.
RIGHT = sorted(
    path
    for id_ in ("reshape_dance", "fused_qkv")
    for path in (REPOSITORY / "grader" / "right" / id_).glob("*.py")
    if re.search(r"\.(view|reshape|flatten|unflatten)\(", path.read_text(encoding="utf-8"))
)
# Attempts whose weights come about in other ways than the reference's: by hand, renormalised, head
# by head.
ATTENDING = sorted(
    path
    for id_ in ("self_attention", "weight_split", "mha_by_loop", "fused_qkv")
    for path in (REPOSITORY / "grader" / "right" / id_).glob("*.py")
    if re.search(
        "by_hand|renormalised|float32_softmax|chunk_and_stack|flat|vmap|loop_over_heads|log",
        path.stem,
    )
)


def operations(explained: Explained) -> list[Operation]:
    return [
        op
        for entry in explained.entries
        if not isinstance(entry, Repeated)
        for op in entry.operations
    ]


@pytest.mark.parametrize("id_", IDS)
def test_the_reference_is_followed_and_right(explain, id_):
    assert {example.target for example in looks_at(id_)} == set(exercise_of(id_).shapes)
    assert all(ambiguity_of(example.axes) < SAME for example in looks_at(id_))
    for explanation in explain(id_):
        assert explanation.is_right, explanation.returned
        assert operations(explanation)
        assert not [op.warning for op in operations(explanation) if op.warning]
        assert (explanation.raised, explanation.dropped) == ("", 0)


def test_a_call_with_blocks_has_several_of_them():
    tiled = exercise_of("tiled_attention")
    for example in examples(tiled, read(tiled.fingerprints)):
        sizes = example.axes.sizes
        assert all(sizes[block] < sizes["T"] for block in ("bq", "bk") if block in sizes)


@pytest.mark.parametrize("id_", IDS)
def test_the_reference_is_drawn_and_as_expected(follow_source, id_):
    drawn = pictures(follow_source(id_, crop=TABLES, times=TIMES))
    assert {picture.words for picture in drawn if not picture.title.startswith("your weights")} == {
        "as expected"
    }
    assert {
        len(picture.panels) for picture in drawn if not picture.title.startswith("your weights")
    } == {1}


WITH_HEADS = """self_attention weight_split mha_by_loop fused_qkv sdpa_equivalence cross_attention
    grouped_query_attention kv_cache""".split()


@pytest.mark.parametrize("id_", WITH_HEADS)
def test_the_expected_weights_of_the_exercises_own_calls_are_known(follow_source, id_):
    drawn = pictures(follow_source(id_, crop=TABLES, times=TIMES))
    verdicts = [picture.words for picture in drawn if picture.title.startswith("your weights")]
    assert verdicts
    assert all(words.endswith(", as expected") for words in verdicts), verdicts


def test_heads_with_another_scale_stand_beside_the_expected_ones(
    follow_source,
):
    source = solution("fused_qkv")
    wrong_source = source.replace("math.sqrt(self.head_dim)", "math.sqrt(C)")
    assert wrong_source != source
    picture = pictures(follow_source("fused_qkv", wrong_source, crop=TABLES, times=TIMES))[0]
    assert (
        picture.title
        == "your weights in CausalSelfAttention(n_embd=30, n_head=5, block_size=13)(x)"
    )
    assert picture.words == "the weights of 5 of 5 heads are not as expected"
    for expected, yours in zip(picture.panels[::2], picture.panels[1::2], strict=True):
        # a larger divisor makes the weights of a row more alike
        assert expected.values.amax(1).mean() > yours.values.amax(1).mean()


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.filterwarnings("ignore")
def test_a_right_attempt_is_right_and_not_doubted(explain, path):
    for explanation in explain(path.parent.name, path.read_text(encoding="utf-8")):
        assert explanation.is_right, explanation.returned
        assert not [op.warning for op in operations(explanation) if op.warning]


@pytest.mark.parametrize(
    ("id_", "heads", "said"),
    [
        ("self_attention", 1, "1 head, as expected"),
        ("weight_split", 4, "4 of 5 heads, as expected"),
        ("mha_by_loop", 4, "4 of 5 heads, as expected"),
        ("fused_qkv", 4, "4 of 5 heads, as expected"),
        ("sdpa_equivalence", 4, "4 of 5 heads, as expected"),
    ],
)
def test_heads_are_found_wherever_weights_are_computed_and_come_first(
    follow_source, id_, heads, said
):
    weights_picture, answer, *_ = pictures(follow_source(id_, crop=TABLES, times=TIMES))
    assert (weights_picture.title, weights_picture.words, weights_picture.differs) == (
        f"your weights in {answer.title}",
        said,
        False,
    )
    assert [(panel.title, panel.kind) for panel in weights_picture.panels] == [
        (f"head {h}", "weights") for h in range(heads)
    ]


@pytest.mark.parametrize("path", ATTENDING, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.filterwarnings("ignore")
def test_no_right_attempt_is_drawn_as_a_wrong_one(follow_source, path):
    source = path.read_text(encoding="utf-8")
    followed = follow_source(path.parent.name, source, crop=TABLES, times=TIMES)
    assert [picture.title for picture in pictures(followed) if picture.differs] == []
