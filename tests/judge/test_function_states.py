"""Where a check failed, which functions an attempt's function uses, and what follows for each."""

import pytest

from manyheads.box.worker.messages import Call, Output, Raised, Reply
from manyheads.box.worker.result_structure import Form
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.checks.runner import Exchange
from manyheads.judge.function_states import (
    FunctionSummary,
    returned_in_another_order,
    states_of,
)
from manyheads.judge.grade_submission import with_functions
from manyheads.submission import Source

RIGHT, WRONG = Reply((Output("right"),)), Reply((Output("wrong"),))
UNWRITTEN = Raised("NotImplementedError", ("NotImplementedError", "Exception"), "", "call", 3)


def failed_in(*named_replies: tuple[str, Reply], ended: Call | None = None, **fields: str) -> str:
    """The function at which a check failed that asked this. fields: of the first call."""
    failed = CheckOutcome("check", "check", Layer.VALUES, 1, "", "failed")
    calls = [Call(name, **(fields if not i else {})) for i, (name, _) in enumerate(named_replies)]
    exchanges = [
        Exchange("check", call, reply)
        for call, (_, reply) in zip(calls, named_replies, strict=True)
    ]
    last = {"check": ended} if ended else {}
    return with_functions(
        [failed], exchanges, last, lambda exchange: exchange.reply.outputs == RIGHT.outputs
    )[0].function


@pytest.mark.parametrize(
    ("exchanges", "place"),
    [
        pytest.param([], "", id="no call"),
        pytest.param([("split", RIGHT), ("merge", WRONG)], "merge", id="it stopped at the last"),
        pytest.param(
            [("split", WRONG), ("merge", WRONG)],
            "merge",
            id="the first may be wrong in what is not asked",
        ),
        pytest.param(
            [("split", WRONG), ("merge", RIGHT)],
            "split",
            id="the last was given what the first got wrong",
        ),
        pytest.param(
            [("split", RIGHT), ("merge", RIGHT)], "merge", id="what was asked is no number"
        ),
    ],
)
def test_a_check_fails_where_it_stops_or_where_that_comes_from(
    exchanges: list[tuple[str, Reply]], place: str
) -> None:
    assert failed_in(*exchanges) == place


def test_whoever_raises_where_numbers_cannot_be_compared_is_where_its_check_failed() -> None:
    raised = Reply(raised=Raised("ValueError", ("ValueError", "Exception"), "no", "call", 4))
    assert failed_in(("make", raised), ("layer", RIGHT), dtype="float32") == "make"
    assert failed_in(("make", WRONG), ("layer", RIGHT), dtype="float32") == "layer"


def test_a_call_that_ended_the_process_is_where_its_check_failed() -> None:
    assert failed_in(("split", WRONG), ended=Call("merge")) == "merge"


BEFORE = """
def layer(n): return n
def helper(n): return layer(n)
def make(size) -> layer:
    n = {"a": 1}[size]
    m = helper(n)
    return m[0]
"""


@pytest.mark.parametrize(
    ("line", "text", "state"),
    [
        pytest.param(5, BEFORE, "wrong", id="before it came to use the other"),
        pytest.param(7, BEFORE, "waiting", id="after that"),
        pytest.param(6, BEFORE, "waiting", id="on that line"),
        pytest.param(2, BEFORE, "waiting", id="in the other"),
        pytest.param(
            6,
            BEFORE.replace("    n =", "    while True:\n     n =").replace("    m", "     m"),
            "waiting",
            id="in a loop",
        ),
    ],
)
def test_what_raises_before_it_uses_another_waits_for_none(
    line: int, text: str, state: str
) -> None:
    raised = Raised("KeyError", ("KeyError", "Exception"), "'b'", "call", line)
    summaries = [
        FunctionSummary("layer", is_asked=True, is_wrong=True),
        FunctionSummary("make", is_asked=True, is_wrong=True, raised=raised),
    ]
    source = Source("attempt.py", text)
    assert [f.state for f in states_of(summaries, source, ["layer"])] == ["wrong", state]


TEXT = """
def scores(q): return q
def weights(q): raise NotImplementedError
def attend(q): return weights(scores(q))
"""


SOURCE = Source("attempt.py", TEXT)


def states(*summaries: FunctionSummary, explained: tuple[str, ...] = ()) -> list[str]:
    return [f"{f.state} {f.waits_for}".strip() for f in states_of(summaries, SOURCE, explained)]


def test_what_uses_an_unwritten_function_waits_for_it_unless_it_has_a_mistake_of_its_own() -> None:
    summaries = [
        FunctionSummary("scores", True),
        FunctionSummary("weights", True, is_wrong=True),
        FunctionSummary("attend", True, is_wrong=True),
    ]
    assert states(*summaries) == ["right", "unwritten", "waiting weights"]
    assert states(*summaries, explained=("attend",)) == ["right", "unwritten", "wrong"]


def test_what_uses_a_name_that_is_not_there_waits_for_it() -> None:
    raised = Raised(
        "NameError", ("NameError", "Exception"), "name 'weight' is not defined", "call", 4
    )
    summaries = [
        FunctionSummary("weight", True, is_undefined=True),
        FunctionSummary("attend", True, is_wrong=True, raised=raised),
    ]
    assert states(*summaries) == ["undefined", "waiting weight"]


def test_of_what_is_written_beside_the_stubs_exception_that_is_told() -> None:
    summaries = [
        FunctionSummary("scores", True, is_wrong=True, is_empty=True),
        FunctionSummary("weights", True, is_wrong=True),
    ]
    begun = TEXT.replace("return q\n", "\n    raise NotImplementedError()\n    return q\n", 1)
    results = states_of(summaries, Source("attempt.py", begun), ())
    says = (
        "the stub's raise on line 3 still stands above code of yours: take that line out once "
        "the rest is written"
    )
    assert [(result.state, result.evidence) for result in results] == [
        ("unwritten", says),
        ("unwritten", ""),
    ]


def test_a_class_of_which_one_method_is_written_is_not_wrong_and_the_other_is_named() -> None:
    half = Source(
        "attempt.py",
        "class Head:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def forward(self, x):\n        raise NotImplementedError\n",
    )
    summaries = [FunctionSummary("Head", True, is_wrong=True, raised=UNWRITTEN)]
    (result,) = states_of(summaries, half, ())
    assert (result.state, result.evidence) == ("unwritten", "its forward is not written yet")
    (result,) = states_of(summaries, half, ("Head",))
    assert result.state == "wrong"


def test_a_name_that_is_not_there_is_told_with_one_that_may_be_meant() -> None:
    (result,) = states_of(
        [FunctionSummary("score", True, is_undefined=True, is_wrong=True)], SOURCE, ()
    )
    assert (result.state, result.near) == ("undefined", "scores")


def test_a_function_is_right_so_far_if_its_check_was_stopped_and_unseen_if_never_called() -> None:
    assert states(FunctionSummary("scores", True, stopped_at="attend")) + states(
        FunctionSummary("scores")
    ) == [
        "so_far attend",
        "unseen",
    ]


USING = Source(
    "attempt.py",
    """
def scores(q, k): return q @ k.mT
def helper(q, k): return scores(q, k)
def attend(q, k, v): return helper(q, k) @ v
class Head(Module):
    def forward(self, x): return attend(x, x, x) + Head.size
if __name__ == "__main__":
    def scores(): return attend
""",
)


def test_what_is_used_by_way_of_another_is_used() -> None:
    assert {name: USING.uses(name) for name in USING.names_used} == {
        "scores": frozenset(),
        "helper": {"scores"},
        "attend": {"helper", "scores"},
        "Head": {"attend", "helper", "scores"},
    }


def test_of_a_text_that_is_no_python_nothing_is_known() -> None:
    source = Source("attempt.py", "def f(:")
    assert (source.names_used, source.uses("f")) == ({}, frozenset())


PAIR = Form("tuple", ("y", "cache"), (Form(), Form("opaque")))
TWO = Form("tuple", ("y", "lse"), (Form(), Form()))


@pytest.mark.parametrize(
    ("returned", "form", "is_exchanged"),
    [
        pytest.param("(k, v), y", PAIR, True, id="a tuple before the tensor"),
        pytest.param("[k, v], self.proj(y)", PAIR, True, id="a list before the tensor"),
        pytest.param("cache, y", PAIR, True, id="the cache by its name"),
        pytest.param("kept, y", PAIR, True, id="a name that holds a tuple"),
        pytest.param("y, (k, v)", PAIR, False, id="the order that is asked"),
        pytest.param("(k, v), cache", PAIR, False, id="two collections"),
        pytest.param("k, v", PAIR, False, id="two tensors"),
        pytest.param("y", PAIR, False, id="no pair"),
        pytest.param("(k, v), y", TWO, False, id="a form of two tensors"),
        pytest.param("(k, v), y", None, False, id="a form of one tensor"),
    ],
)
def test_a_pair_in_the_other_order_is_seen_in_the_text(
    returned: str, form: Form | None, is_exchanged: bool
) -> None:
    text = f"class M:\n    def forward(self):\n        kept = (k, v)\n        return {returned}\n"
    sentence = returned_in_another_order(Source("attempt.py", text), "M", form)
    assert sentence.startswith("The `return` on line 4") == is_exchanged
    assert bool(sentence) == is_exchanged
