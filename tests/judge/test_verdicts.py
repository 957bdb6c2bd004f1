"""Internal: the state of each function of an attempt; no exercise has an example of every state.

`verdicts_of` decides the state of each function from its failures and from the attempt's text.
`tests/grader/test_functions.py` reads states in results.
"""

from functools import partial

from manyheads.box.worker.messages import Raised
from manyheads.course.course_yaml_schema import parse_signature
from manyheads.judge.attribute_public_replies import FunctionSummary, verdicts_of
from manyheads.judge.choose_failure_of_visible_checks import ChosenFailure
from manyheads.judge.public_calls import name_arguments
from manyheads.submission import Source
from tests.make import cases

called = partial(FunctionSummary, is_called=True)
is_wrong = partial(called, is_wrong=True)
LAYERS = """
def layer(n): return n
def helper(n): return layer(n)
def make(size) -> layer:
    n = {"a": 1}[size]
    m = helper(n)
    return m[0]
"""
IN_A_LOOP = LAYERS.replace("    n =", "    while True:\n     n =").replace("    m", "     m")
ATTEND = """
def scores(q): return q
def weights(q): raise NotImplementedError
def attend(q): return weights(scores(q))
"""
HEAD = """class Head:
    def __init__(self, n):
        self.n = n
    def forward(self, x):
        raise NotImplementedError
"""
NAME_ERROR = Raised("NameError", ("NameError",), "name 'weight' is not defined", "call", 4)
STUB = Raised("NotImplementedError", ("NotImplementedError", "Exception"), "", "call", 3)
OF_THREE = (called("scores"), is_wrong("weights"), is_wrong("attend"))
RAISE_ABOVE_CODE = (
    "unwritten: the stub's raise on line 3 still stands above code of yours: take that line out "
    "once the rest is written"
)


@cases(
    "text, summaries, raised, explained, states",
    {
        "it uses an unwritten function": (
            ATTEND,
            OF_THREE,
            {},
            [],
            ["right", "unwritten", "waiting weights"],
        ),
        "it uses an unwritten function and has a mistake": (
            ATTEND,
            OF_THREE,
            {},
            ["attend"],
            ["right", "unwritten", "wrong"],
        ),
        "it uses a name that is not defined": (
            ATTEND,
            (called("weight", is_undefined=True), is_wrong("attend")),
            {"attend": NAME_ERROR},
            [],
            ["undefined near weights", "waiting weight"],
        ),
        "the stub's raise stands above code": (
            ATTEND.replace("return q\n", "\n    raise NotImplementedError()\n    return q\n", 1),
            (is_wrong("scores", is_empty=True), is_wrong("weights")),
            {},
            [],
            [RAISE_ABOVE_CODE, "unwritten"],
        ),
        "one method of a class is written": (
            HEAD,
            (is_wrong("Head", is_class=True),),
            {"Head": STUB},
            [],
            ["unwritten: its forward is not written yet"],
        ),
        "a mistake in a class of which one method is written": (
            HEAD,
            (is_wrong("Head", is_class=True),),
            {"Head": STUB},
            ["Head"],
            ["wrong"],
        ),
        "a check that another function stopped": (
            ATTEND,
            (called("scores", stopped_at="attend"),),
            {},
            [],
            ["so_far attend"],
        ),
        "a function that no check calls": (
            ATTEND,
            (FunctionSummary("scores"),),
            {},
            [],
            ["unseen"],
        ),
    },
)
def test_a_function_gets_its_state_from_its_failures_and_its_text(
    text, summaries, raised, explained, states
):
    chosen = {name: ChosenFailure("check", "", raised[name]) for name in raised}
    verdicts = verdicts_of(summaries, chosen, explained, Source("attempt.py", text))
    descriptions = []
    for verdict in verdicts:
        near = f"near {verdict.near}" if verdict.near else ""
        state = f"{verdict.state} {verdict.waits_for}{near}".strip()
        descriptions.append(f"{state}: {verdict.evidence}" if verdict.evidence else state)
    assert descriptions == states


@cases(
    "text, line, state",
    {
        "raises above the call": (LAYERS, 5, "wrong"),
        "raises on the line of the call": (LAYERS, 6, "waiting"),
        "raises below the call": (LAYERS, 7, "waiting"),
        "raises in the wrong helper": (LAYERS, 2, "waiting"),
        "raises in a loop with the call": (IN_A_LOOP, 6, "waiting"),
    },
)
def test_a_function_waits_for_a_wrong_helper_unless_it_raises_before_the_call(text, line, state):
    raised = Raised("KeyError", ("KeyError",), "'b'", "call", line)
    failure = {"make": ChosenFailure("check", "", raised)}
    summaries = [is_wrong("layer"), is_wrong("make")]
    verdicts = verdicts_of(summaries, failure, ["layer"], Source("attempt.py", text))
    assert [verdict.state for verdict in verdicts] == ["wrong", state]


@cases(
    "signature, sentence, named",
    {
        "a number": (
            "(q: (T, C), block_q: bq, block_k: bk) -> (T, C)",
            "another value of the third argument in eval mode",
            "another value of `block_k` in eval mode",
        ),
        "a tensor of a later call": (
            "(q: (T, C), k: (T, C)) -> (T, C)",
            "no gradient reaches the second argument of call 2",
            "no gradient reaches `k` of call 2",
        ),
        "the argument of forward": (
            "(C)(x: (T, C)) -> (T, C)",
            "an edit of the first argument in [1:]",
            "an edit of `x` in [1:]",
        ),
    },
)
def test_a_sentence_names_arguments_as_the_exercise_does(signature, sentence, named):
    assert name_arguments(sentence, [parse_signature(signature)]) == named
    assert name_arguments(sentence, []) == sentence
