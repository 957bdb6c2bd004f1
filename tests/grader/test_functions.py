"""Attempts at the real course: each function has its own verdict and true, specific messages."""

import ast
import json
import re
from dataclasses import replace

import pytest

from manyheads.course import Exercise, load_course
from manyheads.diagnosis.bank import load_bank
from manyheads.report.report_content import attempt_words, function_reports, problems
from manyheads.result import ExerciseResult
from manyheads.submission import Source
from manyheads.submission.read import read_notebook
from tests.diagnosis.both_sides import Attempt, Sides, named_misconceptions
from tests.make import REPOSITORY, notebook

SCORES, WEIGHTS = (
    "return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])",
    "return torch.softmax(scores, dim=-1)",
)
ATTEND = "return attention_weights(attention_scores(q, k)) @ v"
SIMPLE = (
    "weights = torch.softmax(x @ x.transpose(-2, -1), dim=-1)  # (..., T, T)\n"
    "    return weights @ x"
)
STUB = "raise NotImplementedError"


def function_states(result: ExerciseResult) -> dict[str, str]:
    """Return the state of each function, with the function that it waits for."""
    return {f.name: f"{f.state} {f.waits_for}".strip() for f in result.functions}


def diagnosed_functions(result: ExerciseResult) -> set[tuple[str, str]]:
    """Return each misconception with each function that has it."""
    return {(d.id, name) for d in result.diagnosis for name in (d.function, *d.also_in) if name}


@pytest.mark.parametrize(
    ("exercise", "changes", "states", "diagnosed"),
    [
        pytest.param(
            "attention_scores",
            {SCORES: "return q @ k.transpose(-2, -1)", WEIGHTS: STUB},
            ["right", "wrong", "unwritten", "waiting attention_scores"],
            {("scale_missing", "attention_scores")},
            id="a mistake, a stub, and what waits for both",
        ),
        pytest.param(
            "attention_scores",
            {SCORES: "return q @ k.transpose(-2, -1)", WEIGHTS: "return scores.softmax(-2)"},
            ["right", "wrong", "wrong", "waiting attention_scores"],
            {("scale_missing", "attention_scores"), ("softmax_query_axis", "attention_weights")},
            id="two mistakes in two functions",
        ),
        pytest.param(
            "attention_scores",
            {ATTEND: "return attention_weights(attention_scores(q, k)) @ k"},
            ["right", "right", "right", "wrong"],
            {("values_wrong_source", "attend")},
            id="the last function alone",
        ),
        pytest.param(
            "attention_scores",
            {SIMPLE: STUB},
            ["unwritten", "right", "right", "right"],
            set(),
            id="one stub before three that are right",
        ),
        pytest.param(
            "attention_scores",
            {"def attend(": "def attends("},
            ["right", "right", "right", "undefined"],
            {("interface", "attend")},
            id="a name that is renamed",
        ),
        pytest.param(
            "reshape_dance",
            {"return y.transpose(1, 2).contiguous()": "return y"},
            ["right", "wrong"],
            {("merge_no_transpose", "merge_heads")},
            id="a merge after a right split",
        ),
        pytest.param(
            "reshape_dance",
            {
                "return x.transpose(1, 2)": "return x.float().transpose(1, 2)",
                "return y.transpose(1, 2).contiguous()": (
                    "return y.float().transpose(1, 2).contiguous()"
                ),
            },
            ["wrong", "wrong"],
            {("hard_coded_dtype", "split_heads"), ("hard_coded_dtype", "merge_heads")},
            id="one mistake in two functions, which one check asks",
        ),
        pytest.param(
            "fused_qkv",
            {"(1280, 20)": "(1280, 10)", "math.sqrt(self.head_dim)": "math.sqrt(C)"},
            ["wrong", "wrong"],
            {("scale_sqrt_c", "CausalSelfAttention"), ("gpt2_sizes", "gpt2_attention")},
            id="two mistakes, and a check that compares the two functions",
        ),
        pytest.param(
            "causal_mask",
            {"device=device).tril()": "device=device).tril(-1)"},
            ["wrong", "so_far causal_mask", "waiting causal_mask"],
            {("mask_excludes_self", "causal_mask")},
            id="a mistake that another function uses",
        ),
        pytest.param(
            "fused_qkv",
            {
                "self.resid_dropout(self.proj(y))": "self.proj(y)",
                "if size not in sizes:": "if False:",
            },
            ["wrong", "wrong"],
            {("dropout_output_missing", "CausalSelfAttention")},
            id="a factory that raises before it makes what is wrong",
        ),
        pytest.param(
            "tiled_attention",
            {"return torch.cat(parts, dim=-1)": "return torch.cat(parts, dim=-1) * math.nan"},
            ["wrong", "right"],
            set(),
            id="NaN from the first of two that a check asks",
        ),
    ],
)
def test_grade_and_check_give_each_function_the_same_verdict(
    sides: Sides, exercise, changes, states, diagnosed
):
    graded, at_home = sides.both_results(exercise, changes)
    assert list(function_states(graded).values()) == states
    assert function_states(at_home) == function_states(graded)
    assert diagnosed_functions(at_home) == diagnosed_functions(graded) == diagnosed
    assert not sides.faults(exercise)


def test_wrong_sizes_are_a_mistake_of_the_factory_and_not_of_the_class(sides: Sides) -> None:
    graded = sides.grade_attempt(
        "fused_qkv", {"(1024, 16)": "(1024, 24)", "if size not in sizes:": "if False:"}
    )
    assert list(function_states(graded).values()) == ["so_far gpt2_attention", "wrong"]
    assert diagnosed_functions(graded) == {("gpt2_sizes", "gpt2_attention")}


def test_check_counts_points_out_of_the_same_total_as_grade(sides: Sides) -> None:
    result = sides.home("mha_by_loop", {})
    assert (result.score, result.unseen, result.max_score, result.is_done) == (3.75, 0.25, 4, True)


@pytest.mark.parametrize(
    ("exercise", "changes", "expected", "forbidden"),  # a text, and a pattern ("$^": none)
    [
        pytest.param(
            "attention_scores",
            {SCORES: SCORES.replace("return", "scores =")},
            "✗ attention_scores: It returns None, as where a return is missing.",
            "spelling",
            id="a return is missing",
        ),
        pytest.param(
            "attention_scores",
            {"v: torch.Tensor)": "values: torch.Tensor)", ") @ v": ") @ values"},
            "✗ attend: Its arguments are not the ones that the exercise names.",
            "A name, an argument",
            id="another argument",
        ),
        pytest.param(
            "causal_mask",
            {
                "(scores: torch.Tensor": "(att: torch.Tensor",
                "return scores.masked": "return att.masked",
                "    mask = causal_mask(": "    scores = att\n    mask = causal_mask(",
            },
            "✗ causal_weights: Its arguments are not the ones",
            "not right yet",
            id="another argument in two functions",
        ),
        pytest.param(
            "attention_scores",
            {
                SCORES: "return q @ k.transpose(-2, -1)",
                "return torch.softmax(scores, dim=-1)": STUB,
                "return attention_weights(attention_scores(q, k)) @ v": STUB,
            },
            "✗ attention_scores: You did not scale the scores.",
            "Or:",
            id="an alternative in functions that are not written",
        ),
        pytest.param(
            "reshape_dance",
            {
                "    B, nh, T, hd = y.shape\n    return y.transpose(1, 2)": f"    {STUB}  #",
                "return x.transpose(1, 2)": "return x.reshape(B, n_head, T, C // n_head)",
            },
            "✗ split_heads: You viewed straight to",
            "back again",
            id="an alternative of a merge that is not written",
        ),
        pytest.param(
            "sdpa_equivalence",
            {"q @ k.transpose(-2, -1)": "q @ k", "module: CausalSelfAttention": "module"},
            "· max_path_difference: waits for CausalSelfAttention",
            "✗ max_path",
            id="a measure of a class that raises",
        ),
        pytest.param(
            "sdpa_equivalence",
            {"        module.eval()\n": "        module.eval(); modes = []\n"},
            "the module is left in another mode, training or eval, than it was in",
            "as it was asked",
            id="a mode that is not put back",
        ),
        pytest.param(
            "sdpa_equivalence",
            {"torch.inference_mode()": "torch.enable_grad()"},
            "gradients are recorded on the way",
            "as it was asked",
            id="gradients that are recorded",
        ),
        pytest.param(
            "sdpa_equivalence",
            {"        self.flash = flash\n": "        self.flash = bool(n_embd)\n"},
            "the attribute flash should be False; yours is True",
            "as it was asked",
            id="an attribute",
        ),
        pytest.param(
            "fused_qkv",
            {"(1280, 20)": "(1280, 10)"},
            "what it makes should be CausalSelfAttention(1280, 20, 1024); yours is something else",
            "as it was asked",
            id="a module of other sizes",
        ),
        pytest.param(
            "self_attention",
            {"scores = scores.masked_fill": "scores.masked_fill"},
            "an edit of `x` in [:, 1:, 1:] changes",
            "the input was",
            id="the future is edited",
        ),
        pytest.param(
            "cross_attention",
            {"scores = scores.masked_fill": "scores.masked_fill"},
            "an edit of `context` in [:, :16] changes",
            "the input was",
            id="the padding is edited",
        ),
        pytest.param(
            "weight_split",
            {
                "self.dropout = nn.Dropout(dropout)": (
                    "self.dropout = lambda w: nn.functional.dropout(w, dropout)"
                )
            },
            "another value of dropout in eval mode changes",
            "the input was",
            id="dropout in eval mode",
        ),
        pytest.param(
            "rotary",
            {"base **": "10000.0 **"},
            "another value of `base` leaves numbers as they were",
            "the input was",
            id="a base that is not used",
        ),
        pytest.param(
            "rotary",
            {" / math.sqrt(q.shape[-1])": ""},
            "scores turned queries against turned keys, over √head_dim",
            "takes the base",
            id="a scale, and no other base",
        ),
        pytest.param(
            "causal_mask",
            {", device=device": ""},
            "the output is on cpu, and not on the device that was asked for",
            "expected one",
            id="a device that is not used",
        ),
        pytest.param(
            "tiled_attention",
            {"-math.inf), 0.0, 0.0": "-math.inf), 0.0, torch.zeros_like(rows)"},
            "Here 6 is hd, 7 is hd_v",
            " is B",
            id="the number of an axis is no size",
        ),
        pytest.param(
            "mha_by_loop",
            {"k.transpose(1, 2)": "k.transpose(1, 2)[..., : T // 2]"},
            "Here 11 is T.",
            " is nh",
            id="a number that is a size of one call alone is none",
        ),
        pytest.param(
            "sdpa_equivalence",
            {
                "scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)": "",
                "y = self.attn_dropout(scores.softmax(dim=-1)) @ v": (
                    "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)"
                ),
            },
            "a fused function, which has no second derivative",
            "an operation",
            id="no second derivative",
        ),
        pytest.param(
            "attention_scores",
            {"return torch.softmax(scores, dim=-1)": "return torch.log_softmax(scores, dim=-1)"},
            "Shares between 0 and 1 are expected, and some of these numbers are below 0",
            "$^",
            id="logarithms of shares",
        ),
        pytest.param(
            "attention_scores",
            {"return torch.softmax(scores, dim=-1)": "return torch.sigmoid(scores)"},
            "Shares are expected, and a row of these sums to",
            "$^",
            id="a sigmoid in place of the softmax",
        ),
        pytest.param(
            "causal_mask",
            {'scores.masked_fill(~mask, float("-inf"))': "scores - 1e9 * mask"},
            "What should be hidden is kept",
            "$^",
            id="a mask subtracted the wrong way round",
        ),
        pytest.param(
            "grouped_query_attention",
            {"numbers = 2 * n_layer": "numbers = n_layer"},
            "The expected number is 2 times as large",
            "$^",
            id="half of a number",
        ),
        pytest.param(
            "self_attention",
            {"self.W_query = ": "self.W_q = ", "self.W_query(x)": "self.W_q(x)"},
            "It has no parameter W_query.weight, and has W_q.weight",
            "has parameters that",
            id="a layer of another name",
        ),
        pytest.param(
            "fused_qkv",
            {
                (
                    "return CausalSelfAttention(n_embd, n_head, block_size=1024)"
                ): "return n_embd, n_head, 1024"
            },
            "✗ gpt2_attention: What it returns is no module.",
            "a class is asked for",
            id="sizes in place of a module",
        ),
        pytest.param(
            "causal_mask",
            {"mask_scores(scores, mask), dim": "mask_scores(mask, scores), dim"},
            "✗ causal_weights: Two arguments stand in each other's place.",
            "made of numbers",
            id="exchanged arguments",
        ),
        pytest.param(
            "self_attention",
            {"def __init__(": "def __init_("},
            "✗ CausalAttention: Python does not find its __init__",
            "Its arguments",
            id="__init__ under another name",
        ),
        pytest.param(
            "self_attention",
            {"def forward(": "def call("},
            "A module calls its method forward, and this class has call on line",
            "$^",
            id="forward under another name",
        ),
        pytest.param(
            "sliding_window",
            {"torch.arange(T_k, device=device)": "torch.arange(T_k)"},
            "✗ window_mask: You did not hand the device on",
            "fixed a device",
            id="a device that is not handed on",
        ),
        pytest.param(
            "weight_split",
            {"self.out_proj(context)": "nn.Linear(C := context.shape[-1], C)(context)"},
            "Your module does not own",
            "You fixed a d(type|evice)",
            id="a layer of forward's own",
        ),
        pytest.param(
            "causal_mask",
            {'float("-inf")': '"-inf"'},
            "got (Tensor, str). Text stands where a number is expected",
            "expected one of",
            id="one signature in place of all",
        ),
        pytest.param(
            "mha_by_loop",
            {"    return mha.proj(torch.cat(heads": "        return mha.proj(torch.cat(heads"},
            "stands inside the loop that begins on line",
            "averaged",
            id="a return within the loop",
        ),
        pytest.param(
            "mha_by_loop",
            {
                "heads.append(scores.softmax(dim=-1) @ v)": "head = scores.softmax(dim=-1) @ v",
                "torch.cat(heads, dim=-1)": "head",
            },
            "is replaced in each turn",
            "averaged",
            id="the last head alone",
        ),
        pytest.param(
            "mha_by_loop",
            {"torch.cat(heads, dim=-1)": "torch.stack(heads).mean(0)"},
            "You averaged or summed the heads",
            "loop that begins",
            id="a mean of all heads",
        ),
        pytest.param(
            "kv_cache",
            {"cache[0].shape[2]": "cache[0].shape[1]"},
            "is the size of axis 1, which is self.n_head",
            "Axes meet",
            id="the number of heads for the length of the cache",
        ),
        pytest.param(
            "kv_cache",
            {"return self.proj(y), (k, v)": "return (k, v), self.proj(y)"},
            "gives the pair in the other order: (y, cache) is asked",
            "Axes are counted",
            id="a pair in the other order",
        ),
        pytest.param(
            "self_attention",
            {'raise ValueError(f"{T}': 'return ValueError(f"{T}'},
            "is made and not raised: write `raise` before it",
            "$^",
            id="an exception that is returned",
        ),
        pytest.param(
            "reshape_dance",
            {"raise ValueError(": "ValueError("},
            "is made and not raised: write `raise` before it",
            "$^",
            id="an exception that is made alone",
        ),
        pytest.param(
            "causal_mask",
            {'float("-inf"))  # (..., T_q, T_k)': 'float("-inf")).softmax(-1)'},
            "Scores are expected, and these are already shares",
            "$^",
            id="a softmax too early",
        ),
        pytest.param(
            "sdpa_equivalence",
            {".abs().max().item()": ".abs().max().item() * torch.rand(1).item()"},
            "Asked again with the same inputs, it returned another number",
            "$^",
            id="a random number",
        ),
        pytest.param(
            "sdpa_equivalence",
            {".abs().max().item()": ".abs().mean().item()"},
            "the mean of the absolute differences",
            "random",
            id="the mean, which is the same each time",
        ),
        pytest.param(
            "attention_scores",
            {"return weights @ x": "return None[0]"},
            "as if it were a tensor. Python says",
            r"\?\.",
            id="a question has one mark at its end",
        ),
    ],
)
def test_the_report_names_the_mistake(
    sides: Sides, exercise: str, changes: dict[str, str], expected: str, forbidden: str
) -> None:
    functions = attempt_words(sides.home(exercise, changes)).functions
    texts = []
    for f in functions:
        texts += [f"{f.mark} {f.head}", *(message for _, message, _ in f.details)]
    text = "\n".join(texts)
    assert expected in text
    assert not re.search(forbidden, text)


@pytest.mark.parametrize(
    ("exercise", "forbidden"),
    [
        ("attention_scores", r"\bheads?\b|n_head|dropout"),
        ("causal_mask", r"\bheads?\b|n_head|dropout"),
        ("self_attention", r"\bheads?\b|n_head|head_dim|padding"),
        ("sliding_window", r"\bheads?\b|n_head|dropout|padding"),
        ("reshape_dance", r"softmax|dropout|scores"),
    ],
)
def test_titles_and_hints_mention_nothing_that_the_exercise_lacks(
    sides: Sides, exercise: str, forbidden: str
) -> None:
    bank = load_bank(sides.exercise(exercise))
    texts = {mutant.id: bank.texts[mutant.id] for mutant in bank.mutants}
    assert not [
        (id_, text)
        for id_, t in texts.items()
        for text in (t.title, *t.hints)
        if re.search(forbidden, text)
    ]


ABOVE = """import math
def simplified_attention(x): return (x @ x.mT).softmax(-1) @ x
def attention_scores(q, k): return q @ k.mT / math.sqrt(q.shape[-1])
def attention_weights(scores): return scores.softmax(-1)
"""
BELOW = "def attend(q, k, v): return attention_weights(attention_scores(q, k)) @ v\n"
LEFT_BELOW = (
    "def attend(q, k, v):\n    weights = attention_weights(attention_scores(q, k))\n"
    "    raise NotImplementedError()\n"
)
IN_CAPITALS = BELOW.replace("attend(", "ATTEND(", 1)
A_CLASS = "class attend:\n    def __init__(self, q, k, v): self.q = q\n"
CODE_AND_MESSAGE = {  # code to add after ABOVE, and the message about its function, the fourth
    "in a string": (
        f'"""\n{BELOW}"""\n',
        "attend: it stands inside the string that begins on line 5: that is text, not code.",
    ),
    "in a class": (
        f"class Answers:\n    {BELOW}",
        "attend: it stands on line 6 inside the `class` on line 5, which keeps it from being seen.",
    ),
    "below the main guard": (
        f'if __name__ == "__main__":\n    {BELOW}',
        "attend: it stands on line 6 inside the `if` on line 5",
    ),
    "overwritten": (
        f"{BELOW}attend = attend.__doc__\n",
        "attend: it stands on line 5, and is no function or class once all has run.",
    ),
    "in capitals": (
        IN_CAPITALS,
        "attend: the file has no such name; is ATTEND meant? Capital letters count.",
    ),
    "above a stub": (
        f"{BELOW}def attend(q, k, v): raise NotImplementedError()\n",
        "attend: what is written on line 5 is not seen, for the stub on line 6 counts.",
    ),
    "async": (
        f"async {BELOW}",
        (
            "It is an `async def`, written on line 5, so that a call gives a coroutine: take "
            "`async` away"
        ),
    ),
    "a class": (A_CLASS, "It is a class, written on line 5, and a function is asked for"),
    "a generator": (
        BELOW.replace("return", "yield"),
        "A `yield` makes it a generator, written on line 5: return the answer",
    ),
    "a generator, by a yield in the source of another": (
        "def attend(q, k, v):\n    return sum(x for x in (yield q))\n",
        "A `yield` makes it a generator, written on line 6: return the answer",
    ),
    "a stub's raise left below code": (
        LEFT_BELOW,
        "the stub's raise on line 7 still stands below code of yours: take that line out",
    ),
}


def test_a_trace_is_suggested_only_for_wrong_numbers(sides: Sides) -> None:
    """The first change is wrong only in its gradient; the second gives wrong numbers."""
    scores = SCORES.removeprefix("return ")
    for changed, next_step in (
        (f"{scores} + ({scores} - ({scores}).detach())", ""),
        (f"{scores} + 1.5", "course trace"),
    ):
        words = attempt_words(sides.home("attention_scores", {SCORES: f"return {changed}"}))
        assert words.first_wrong
        assert words.first_wrong.next.startswith(next_step)
        assert bool(words.next_command) == bool(next_step)


def messages_by_side(
    sides: Sides, attempt: Attempt, exercise: str = "attention_scores"
) -> list[list[str]]:
    """Return the messages about each function: those of grading and those of `course check`."""
    lines_by_side = []
    for result in sides.both_results(exercise, attempt):
        reports = function_reports(result)
        lines_by_side.append([f"{r.head} {r.evidence} {r.hint}" for r in reports])
    return lines_by_side


@pytest.mark.parametrize(
    ("code", "message"), [pytest.param(*row, id=name) for name, row in CODE_AND_MESSAGE.items()]
)
def test_misplaced_code_and_wrong_definitions_are_reported_with_their_line(sides, code, message):
    for lines in messages_by_side(sides, ABOVE + code):
        assert message in lines[3]
        if code != IN_CAPITALS:  # otherwise the name itself is wrong, and spelling is the advice
            assert not [line for line in lines if "letter by letter" in line]


def test_an_editor_marks_the_line_that_the_message_names(sides: Sides) -> None:
    for code, _ in CODE_AND_MESSAGE.values():
        source = Source("a.py", ABOVE + code)
        for problem in problems(sides.home("attention_scores", source), source):
            match = re.search(r"on line (\d+)", f"{problem.report.evidence} {problem.report.head}")
            assert match is None or problem.line == int(match[1]), problem.sentence


def test_the_message_about_a_misspelt_method_names_the_right_one(sides: Sides) -> None:
    for lines in messages_by_side(sides, ABOVE.replace("k.mT", "k.trasnpose(-2, -1)") + BELOW):
        assert "Did you mean transpose, where it says trasnpose?" in lines[1]


def test_a_function_in_place_of_a_class_is_reported(sides: Sides) -> None:
    source = (
        "def CausalAttention(d_in, d_out, context_length, dropout=0.0, qkv_bias=False):\n"
        "    return d_in\n"
    )
    for lines in messages_by_side(sides, source, "self_attention"):
        assert "It is a function, written on line 1, and a class is asked for" in lines[0]


@pytest.mark.parametrize(
    ("cell_type", "message"),
    [
        ("markdown", "attend: it stands in a Markdown cell: make it a code cell."),
        ("raw", "attend: it stands in a Raw cell: make it a code cell."),
    ],
)
def test_an_answer_in_a_text_cell_is_reported(sides: Sides, cell_type: str, message: str) -> None:
    document = json.loads(notebook(ABOVE, BELOW))
    document["cells"][1]["cell_type"] = cell_type
    for lines in messages_by_side(
        sides, replace(read_notebook(json.dumps(document)), name="a.ipynb")
    ):
        assert message in lines[3]
        assert not [line for line in lines if "letter by letter" in line]


def test_a_message_about_a_notebook_names_a_line_of_a_cell(sides: Sides) -> None:
    parsed = read_notebook(notebook(ABOVE, f"async {BELOW}"))
    for lines in messages_by_side(sides, Source("a.ipynb", parsed.text, cells=parsed.cells)):
        assert "written on line 1 of code cell 2" in lines[3]


LEFT_OPEN = (
    'if cache is not None:\n            y = x\n            raise NotImplementedError("TODO")\n'
    "        B, T, C = x.shape\n"
)


def test_an_unwritten_branch_is_reported_and_is_not_a_stub(sides: Sides) -> None:
    attempt = {"B, T, C = x.shape\n": LEFT_OPEN}
    for lines in messages_by_side(sides, attempt, "kv_cache"):
        assert "the case that comes to this line is not written yet" in lines[0]
    assert [named_misconceptions(result) for result in sides.both_results("kv_cache", attempt)] == [
        [],
        [],
    ]
    assert [
        named_misconceptions(result)
        for result in sides.both_results("attention_scores", ABOVE + LEFT_BELOW)
    ] == [
        [],
        [],
    ]


EXERCISES = load_course(REPOSITORY).exercises


def emptied_solution(exercise: Exercise, emptied: tuple[type[ast.stmt], ...]) -> str:
    """Return the solution with a docstring in place of each body of these kinds."""
    tree = ast.parse(exercise.solution.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, emptied):
            node.body = ast.parse('"""Later."""').body
    return ast.unparse(tree)


@pytest.mark.parametrize(
    ("exercise", "emptied"),
    [
        *(pytest.param(exercise, (ast.FunctionDef,), id=exercise.id) for exercise in EXERCISES),
        *(
            pytest.param(exercise, (ast.FunctionDef, ast.ClassDef), id=f"{exercise.id}: no methods")
            for exercise in EXERCISES
            if exercise.id in ("self_attention", "sdpa_equivalence")
        ),
    ],
)
def test_an_empty_solution_is_diagnosed_only_as_an_untouched_stub(
    sides: Sides, exercise: Exercise, emptied: tuple[type[ast.stmt], ...]
) -> None:
    graded, checked = sides.both_results(exercise.id, emptied_solution(exercise, emptied))
    assert (graded.score, named_misconceptions(graded)) == (0, ["stub_untouched"])
    assert [(d.id, d.title) for d in checked.diagnosis] == [
        ("stub_untouched", graded.diagnosis[0].title)
    ]
    assert checked.diagnosis[0].hint


@pytest.mark.parametrize("text", ["", "# Later.\n"], ids=["an empty file", "a remark"])
def test_a_file_without_code_is_diagnosed_as_an_untouched_stub(sides: Sides, text: str) -> None:
    assert [
        named_misconceptions(result) for result in sides.both_results(EXERCISES[0].id, text)
    ] == [["stub_untouched"]] * 2
