"""Internal: a false sentence misleads, so each is tried on more near misses than attempts show.

The sentences describe slips in an attempt's text, and what its wrong numbers have in common.
`tests/grader/test_functions.py` reads them in results.
"""

import math
import time

import pytest
import torch
from torch import tensor

from manyheads.box.worker.messages import Call, Output, Reply
from manyheads.box.worker.result_form import Form
from manyheads.diagnosis.fingerprint import ReplyFingerprint
from manyheads.diagnosis.observed_reply import ObservedReply
from manyheads.judge.choose_failure_of_visible_checks import (
    describe_wrong_numbers,
    origin_of_numbers,
)
from manyheads.judge.definition_faults import (
    always_true_advice,
    call_of_helper,
    return_order_advice,
    unused_result_advice,
)
from manyheads.judge.slips_in_function_text import slip_behind_answer
from manyheads.submission import Source
from tests.make import cases, read_table

SLIPS = read_table("judge/slips.yaml")
ABOVE = (
    "class M:\n    def __init__(self):\n        self.m = self.m[1:]\n    def forward(self, x):\n"
)


def slip_sentence(body, evidence):
    """Return the sentence about a slip in a method with this body, which begins on line 5."""
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return slip_behind_answer(Source("attempt.py", ABOVE + lines).definition("M"), evidence)


@pytest.mark.parametrize(
    ("evidence", "sentence", "body"),
    [
        (evidence, sentence, body)
        for evidence, bodies_by_sentence in SLIPS.items()
        for sentence, bodies in bodies_by_sentence.items()
        for body in bodies
    ],
)
def test_a_slip_is_named_with_its_line(evidence, sentence, body):
    assert slip_sentence(body, evidence).startswith(sentence)
    # every text starts with "": if no sentence is expected, there must be none
    assert bool(slip_sentence(body, evidence)) == bool(sentence)


VALUES, SHAPE = SLIPS
NESTED_LOOPS = "for i in x:\n    for j in i:\n        k += 1\n" * 2000 + "return k"


@cases(
    "body, evidence",
    {
        "depth": (f"k = k{'.a()' * 900}\nm[k{' - 1' * 900} : 2] = 1", VALUES),
        "conditions": ("if x:\n    y = a()\n" * 3000 + "return y", VALUES),
        "loops": (NESTED_LOOPS, VALUES),
        "loops, if the shape is another one": (NESTED_LOOPS, SHAPE),
        "assignments": ("k = a(k)\n" * 9000 + "return k", SHAPE),
    },
)
def test_a_long_text_is_searched_for_slips_within_seconds(body, evidence):
    started = time.process_time()
    assert slip_sentence(body, evidence) == ""
    assert time.process_time() - started < 4


PAIR = Form("tuple", ("y", "cache"), (Form(), Form("opaque")))
TWO_TENSORS = Form("tuple", ("y", "lse"), (Form(), Form()))


@cases(
    "returned, form, is_exchanged",
    {
        "a tuple before the tensor": ("(k, v), y", PAIR, True),
        "the cache by its name": ("cache, y", PAIR, True),
        "a name that holds a tuple": ("kept, y", PAIR, True),
        "the order that is asked": ("y, (k, v)", PAIR, False),
        "two collections": ("(k, v), cache", PAIR, False),
        "two tensors": ("k, v", PAIR, False),
        "a form of two tensors": ("(k, v), y", TWO_TENSORS, False),
        "a form of one tensor": ("(k, v), y", None, False),
    },
)
def test_a_pair_that_is_returned_in_the_wrong_order_is_named(returned, form, is_exchanged):
    text = f"class M:\n    def forward(self):\n        kept = (k, v)\n        return {returned}\n"
    sentence = return_order_advice(Source("attempt.py", text), "M", form)
    assert sentence.startswith("The `return` on line 4") == bool(sentence) == is_exchanged


MODULE = """class M(nn.Module):
    def __init__(self):
        self.proj = nn.Linear(3, 3)
        self.kept = []
    def forward(self, x):
        {}
"""


@cases(
    "line, sentence",
    {
        "a layer": ("self.proj(x)", "The result of self.proj(…) on line 6 is not used"),
        "a method": ("x.masked_fill(m, 0)", "The result of .masked_fill(…) on line 6"),
        "a method that works in place": ("x.masked_fill_(m, 0)", ""),
        "a result that is used": ("x = self.proj(x)", ""),
        "a method of a list": ("self.kept.append(x)", ""),
        "an attribute that is no layer": ("self.look(x)", ""),
    },
)
def test_an_unused_result_is_named(line, sentence):
    advice = unused_result_advice(Source("attempt.py", MODULE.format(line)), "M")
    assert advice.startswith(sentence)
    assert bool(advice) == bool(sentence)


@cases(
    "condition, is_named",
    {
        "a text after `or`": ('size == "small" or "medium"', True),
        "two comparisons": ('size == "small" or size == "medium"', False),
        "an empty text": ('size or ""', False),
    },
)
def test_a_condition_that_is_always_true_is_named(condition, is_named):
    source = Source("attempt.py", f"def f(size):\n    if {condition}:\n        return 1\n")
    assert ("line 2 is always true" in always_true_advice(source, "f")) == is_named


HELPER = "def mask(T):\n    return ones(T)\ndef weights(s):\n    return mask(s)\n"
CALLED = "mask was called on line 4."


@cases(
    "text, name, line, sentence",
    {
        "one call": (HELPER, "weights", 2, CALLED),
        "two calls on one line": (HELPER[:-1] + " * mask(s)\n", "weights", 2, CALLED),
        "the function itself": (HELPER, "mask", 2, ""),
        "a line of the caller": (HELPER, "weights", 4, ""),
        "another caller": (HELPER + "def more(s):\n    return mask(s)\n", "weights", 2, ""),
    },
)
def test_the_only_call_of_a_helper_that_raised_is_named(text, name, line, sentence):
    assert call_of_helper(Source("attempt.py", text), name, line) == sentence


SCORES = tensor([[0.5, 2.0, -1.0], [1.0, 0.0, 3.0]])
SHARES = SCORES.softmax(-1)
MASK = tensor([[True, False, False], [True, True, False]])
MASKED = SCORES.masked_fill(~MASK, -math.inf)
HIDES_THE_OTHERS = "What should be hidden is kept, and what should be kept is hidden"


@cases(
    "actual, expected, sentence",
    {
        "logarithms": (
            "SCORES.log_softmax(-1)",
            "SHARES",
            "Shares between 0 and 1 are expected, and some of these numbers are below 0",
        ),
        "a sigmoid": (
            "SCORES.sigmoid()",
            "SHARES",
            "Shares are expected, and a row of these sums to 2.18 instead of 1",
        ),
        "other shares": ("SCORES.flip(-1).softmax(-1)", "SHARES", ""),
        "another shape": ("SHARES.T", "SHARES", ""),
        "other numbers": ("SCORES", "SCORES + 1", ""),
        "NaN": ("SHARES * math.nan", "SHARES", ""),
        "rows of a single share": ("torch.ones(2, 1) * 3", "torch.ones(2, 1)", ""),
        "a mask the wrong way round": ("SCORES - 1000000000.0 * MASK", "MASKED", HIDES_THE_OTHERS),
        "a softmax too early": (
            "MASKED.softmax(-1)",
            "MASKED",
            "Scores are expected, and these are already shares",
        ),
        "a softmax at the end": (
            "SHARES",
            "SCORES",
            "Each row sums to 1, as after a softmax, and the expected rows do not",
        ),
        "+∞ the wrong way round": (
            "SCORES.masked_fill(MASK, math.inf)",
            "MASKED",
            "What should be kept is +∞, and what should be hidden is kept",
        ),
        "+∞": (
            "SCORES.masked_fill(~MASK, math.inf)",
            "MASKED",
            "There is +∞ among these numbers: a score is hidden by −∞",
        ),
        "no mask": ("SCORES", "MASKED", ""),
        "a low number in place of −∞": ("SCORES - 1000000000.0 * ~MASK", "MASKED", ""),
        "half": ("tensor(6)", "tensor(12)", "The expected number is 2 times as large"),
        "four times": ("tensor(48)", "tensor(12)", "It is 4 times the expected number"),
        "the other sign": ("tensor(-12)", "tensor(12)", "Its sign is the wrong one"),
        "zero": ("tensor(0)", "tensor(12)", ""),
        "a factor that is no count": ("tensor(12000)", "tensor(12)", ""),
        "zero is expected": ("tensor(12.0)", "tensor(0.0)", ""),
        "a number in place of −∞": ("tensor(3.0)", "tensor(-math.inf)", ""),
    },
)
def test_wrong_numbers_are_described(actual, expected, sentence):
    description = describe_wrong_numbers(eval(actual), eval(expected))
    assert description.startswith(sentence)
    assert bool(description) == bool(sentence)


# two sequences, three positions, four channels: two heads of two
STREAM = torch.arange(24.0, dtype=torch.float64).sqrt().reshape(2, 3, 4)
HEADS, VIEW = STREAM.view(2, 3, 2, 2).transpose(1, 2), STREAM.view(2, 2, 3, 2)
# the place of the first wrong number, and the places that the right and the wrong one come from
OF_A_VIEW = ("[0, 0, 1, 0]", "first argument", "[0, 1, 0]", "[0, 0, 2]")


@cases(
    "actual, expected, arguments, origin",
    {
        "a wrong view": ("VIEW", "HEADS", "(STREAM, 2)", OF_A_VIEW),
        "a transpose that is missing": (
            "HEADS.reshape(2, 3, 4)",
            "STREAM",
            "(HEADS,)",
            ("[0, 0, 2]", "first argument", "[0, 1, 0, 0]", "[0, 0, 1, 0]"),
        ),
        "another argument than the first": (
            "STREAM.flip(1)",
            "STREAM",
            "(2, torch.ones(3), STREAM)",
            ("[0, 0, 0]", "third argument", "[0, 0, 0]", "[0, 2, 0]"),
        ),
        "an answer in float32": ("VIEW.float()", "HEADS", "(STREAM, 2)", OF_A_VIEW),
        "the right numbers in float32": ("HEADS.float()", "HEADS", "(STREAM, 2)", ()),
        "another shape": ("HEADS.mT", "HEADS", "(STREAM, 2)", ()),
        "other numbers": ("2 * VIEW", "HEADS", "(STREAM, 2)", ()),
        "other numbers are expected": ("VIEW", "2 * HEADS", "(STREAM, 2)", ()),
        "NaN": ("HEADS * math.nan", "HEADS", "(STREAM, 2)", ()),
        "complex numbers": ("VIEW + 1j", "HEADS", "(STREAM, 2)", ()),
        "a single number": ("STREAM[0, 0, 1]", "STREAM[0, 0, 2]", "(STREAM,)", ()),
        "no tensor": ("None", "HEADS", "(STREAM, 2)", ()),
        "no tensor is expected": ("VIEW", "None", "(STREAM, 2)", ()),
        "an empty argument": ("torch.zeros(3)", "torch.ones(3)", "(torch.ones(0),)", ()),
        "an argument of one number": ("torch.zeros(3)", "torch.ones(3)", "(torch.ones(1),)", ()),
        "an argument of integers": ("torch.zeros(3)", "torch.ones(3)", "(torch.arange(3),)", ()),
    },
)
def test_the_origin_of_a_wrong_number_is_named(actual, expected, arguments, origin):
    call, reply = Call("f", eval(arguments)), Reply((Output("tensor", eval(actual)),))
    none = ReplyFingerprint()
    sentence = origin_of_numbers(ObservedReply(call, none, (eval(expected),), reply, none))
    template = "At {} should be the number that the {} has at {}; yours is the one at {}"
    assert sentence == (template.format(*origin) if origin else "")
