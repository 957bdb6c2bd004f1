"""Questions about an attempt's own code: right, the same for the same code and seed, and each
option with its reason.
"""

import random
import re
from collections.abc import Callable

import pytest
import torch

from manyheads.box.connection import Box
from manyheads.box.worker.messages import Output, Raised, Reply
from manyheads.diagnosis.recording_file import read
from manyheads.files import CourseFault
from manyheads.student.ask_about_own_code import (
    NOTHING,
    NUMBERS,
    RAISES,
    SHAPE,
    outcome,
    questions_about,
    shown_code,
)
from manyheads.student.question import (
    ASKED,
    LETTERS,
    Option,
    Question,
    answer_lines,
    question,
    read_letters,
)
from manyheads.submission import Source
from tests.student.real import course, exercise_of, solution

Ask = Callable[..., list[Question]]
EXERCISES = {exercise.id: exercise for exercise in course().exercises}
SHAPES, AXES, ORIGINS, EDITS = (
    "Which shape ",
    "What does axis ",
    "Which number ",
    "What comes of it?",
)


@pytest.fixture
def questions_of_source(box: Box) -> Ask:
    """Questions about a source, all that there are; by default about the solution of the reshape
    dance.
    """

    def ask_questions(
        id_: str = "reshape_dance",
        text: str = "",
        count: int = 1000,
        seed: int = 3,
        **fields: object,
    ) -> list[Question]:
        exercise, limits = EXERCISES[id_], course().limits.for_worker()
        text = text or exercise.solution.read_text()
        source = Source("own.py", text, **fields)  # type: ignore[arg-type]
        return questions_about(
            box, limits, exercise, read(exercise.fingerprints), source, seed, count
        )

    return ask_questions


def of_kind(phrase: str, questions: list[Question]) -> list[Question]:
    matches = [question_ for question_ in questions if phrase in question_.text]
    assert matches
    return matches


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_a_right_attempt_gives_five_questions_and_the_same_in_another_run(
    questions_of_source, exercise
):
    attempt = exercise.right_attempts()[-1].read_text()
    questions = questions_of_source(exercise.id, attempt, ASKED)
    assert len(questions) == ASKED
    for question_ in questions:
        assert len({option.text for option in question_.options}) == len(LETTERS)
    assert all(option.cause for question_ in questions for option in question_.options)
    assert questions_of_source(exercise.id, attempt, ASKED) == questions
    assert questions_of_source(exercise.id, attempt, ASKED, seed=4) != questions


def returned_value(number: int, line: str, call: str, sizes: dict[str, int]) -> object:
    """What a call of the solution returns with another line in place of this one; the exception
    that it raises.
    """
    lines = solution("reshape_dance").splitlines()
    old = lines[number - 1]
    lines[number - 1] = old[: len(old) - len(old.lstrip())] + line
    shapes = {
        "x": [sizes[a] for a in ("B", "T", "C")],
        "y": [sizes[a] for a in ("B", "nh", "T", "hd")],
    }
    namespace: dict[str, object] = {
        n: torch.arange(torch.Size(s).numel()).view(s) for n, s in shapes.items()
    }
    exec("\n".join(lines), namespace)
    try:
        return eval(call, namespace)
    except Exception as error:
        return error


def effect_of_edit(original: torch.Tensor, edited: object) -> str:
    if not isinstance(edited, torch.Tensor):
        return RAISES
    if edited.shape != original.shape:
        return SHAPE
    return NOTHING if edited.equal(original) else NUMBERS


def right_option(question_: Question) -> str:
    """The right option of a question on the solution, found without the box."""
    call, sizes = (
        question_.text.partition(" runs with ")[0],
        {n: int(s) for n, s in re.findall(r"(\w+) = (\d+)", question_.text)},
    )
    number, code = question_.code.removeprefix("Line ").split(": ", 1)
    edit = re.findall(r" becomes `(.*)`\. ", question_.text)
    original = returned_value(
        int(number), re.sub(r"^(return|\w+ =) ", "return ", code), call, sizes
    )
    assert edit or isinstance(original, torch.Tensor)
    if edit:
        original, edited = (
            returned_value(int(number), code, call, sizes),
            returned_value(int(number), edit[0], call, sizes),
        )
        assert isinstance(original, torch.Tensor)
        return effect_of_edit(original, edited)
    assert isinstance(original, torch.Tensor)
    if SHAPES in question_.text:
        return str(tuple(original.shape))
    if AXES in question_.text:
        size = original.shape[int(re.findall(r"axis (\d)", question_.text)[0])]
        return next(
            f"{name}, {size} of them" for name, axis_size in sizes.items() if axis_size == size
        )
    return str(
        int(
            original[
                tuple(map(int, re.findall(r"stands at \[(.*?)\]", question_.text)[0].split(", ")))
            ]
        )
    )


@pytest.mark.parametrize("kind", [SHAPES, AXES, ORIGINS, EDITS])
def test_the_right_option_is_what_the_code_does_and_stands_anywhere(questions_of_source, kind):
    questions = of_kind(kind, questions_of_source())
    assert [question_.options[question_.correct_index].text for question_ in questions] == list(
        map(right_option, questions)
    )
    assert len({question_.correct_index for question_ in questions_of_source()}) == len(LETTERS)


def test_two_options_that_are_equal_count_once_and_too_few_make_no_question():
    distractors = [Option("1", "a"), Option("2", "b"), Option("1", "c"), Option("3", "d")]
    posed_question = question(
        random.Random(1), "how many?", "", Option("4", "so many"), distractors
    )
    assert sorted(option.text for option in posed_question.options) == ["1", "2", "3", "4"]
    assert posed_question.options[posed_question.correct_index].text == "4"
    assert question(random.Random(1), "how many?", "", Option("1", "so many"), distractors) is None


@pytest.mark.parametrize("id_", ["reshape_dance", "attention_scores"])
def test_nothing_that_is_told_before_a_second_try_gives_the_answer_away(questions_of_source, id_):
    compares = re.compile(r"one axis more|gone|other way round|joined|[Ii]ts size is|comes to")
    for question_ in questions_of_source(id_):
        correct = question_.options[question_.correct_index].text
        for letter in LETTERS.replace(LETTERS[question_.correct_index], ""):
            (feedback,) = answer_lines(question_, letter, shows_right=False)
            assert feedback.plain.startswith("✗ ")
            assert (
                correct not in feedback.plain or ORIGINS in question_.text
            )  # of which [8, 2] may hold the 8
            assert not compares.search(feedback.plain), feedback.plain
            assert correct in "".join(
                line.plain for line in answer_lines(question_, letter, shows_right=True)
            )


def test_a_comment_that_may_say_what_is_asked_is_not_shown(questions_of_source):
    assert [
        text
        for question_ in questions_of_source("attention_scores")
        for text in (question_.code, question_.text)
        if "  #" in text
    ] == []
    assert shown_code('y = x["#"] + f(  # that is "(B, T)"') == 'y = x["#"] + f('
    assert shown_code("    .view(B, T)  # it's a view") == ".view(B, T)"


UNCLEAR = """\
import torch


def turned(y):
    return y.transpose(1, 2)


def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(n_head)
    hd = C // n_head
    rows = []
    for t in range(T):
        rows.append(x[:, : t + 1].sum(1))
    first, last = x[:, 0], x[:, :, :1]
    kept = x * 1.0; x = kept
    f = lambda z: z.flip(0)
    f(x)
    scaled = (x * 1.0).view(B, T, n_head, hd)
    copied = x.transpose(0, 1).contiguous().view(T, B, n_head, hd)
    moved = turned(scaled.flip(-1))
    return scaled.transpose(1, 2)


def merge_heads(y):
    out = y.new_empty(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])
    for h in range(y.shape[1]):
        out[:, :, h * y.shape[3] : (h + 1) * y.shape[3]] = y[:, h]
    return out
"""


def codes_of_kind(phrase: str, questions: list[Question]) -> set[str]:
    """Return the lines of code, without their numbers, that questions of one kind show."""
    return {question_.code.partition(": ")[2] for question_ in of_kind(phrase, questions)}


def test_a_line_is_asked_about_only_where_it_has_one_result_and_the_same_in_each_visit(
    questions_of_source,
):
    questions = questions_of_source(text=UNCLEAR)
    shapes, axes, origins = (codes_of_kind(k, questions) for k in (SHAPES, AXES, ORIGINS))
    assert (
        shapes
        == axes
        == {
            "return y.transpose(1, 2)",
            "scaled = (x * 1.0).view(B, T, n_head, hd)",
            "copied = x.transpose(0, 1).contiguous().view(T, B, n_head, hd)",
            "return scaled.transpose(1, 2)",
            "out = y.new_empty(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])",
        }
    )
    assert origins <= shapes
    # An edit may leave the new memory unset, whose numbers are chance.
    assert {
        question_.options[question_.correct_index].text for question_ in of_kind(EDITS, questions)
    } == {
        RAISES,
        SHAPE,
    }


def test_what_is_no_tensor_or_has_another_dtype_is_called_neither_the_same_nor_an_exception():
    def reply_of(*tensors: torch.Tensor | None) -> Reply:
        return Reply(outputs=tuple(Output(kind="tensor", tensor=tensor) for tensor in tensors))

    original = reply_of(torch.ones(2, 3))
    outcomes = [
        outcome(reply_of(tensor), original)
        for tensor in (torch.ones(2, 3), torch.zeros(2, 3), torch.ones(3, 2))
    ]
    assert outcomes == [NOTHING, NUMBERS, SHAPE]
    replies = (
        reply_of(torch.ones(2, 3).bool()),
        reply_of(None),
        reply_of(torch.ones(())),
        reply_of(torch.ones(2, 3), torch.ones(2, 3)),
        None,
    )
    assert [outcome(reply, original) for reply in replies] == [""] * 5
    assert outcome(Reply(raised=Raised("NameError", (), "", "call", None)), original) == ""


def test_of_several_results_the_first_is_asked_about_and_said_to_be(
    questions_of_source,
):
    assert all(
        question_.text.endswith(" Only its first result counts.")
        for question_ in of_kind(EDITS, questions_of_source("kv_cache"))
    )


def test_edits_can_be_read_and_name_no_self_where_no_class_is(questions_of_source):
    edits = of_kind(EDITS, [*questions_of_source(), *questions_of_source("mha_by_loop")])
    assert [
        line
        for question_ in edits
        for line in re.findall("`(.*)`", question_.text)
        if "self." in line or len(line) > 120
    ] == []


def test_lines_of_a_notebook_are_called_by_their_cells(questions_of_source):
    text = solution("reshape_dance")
    questions = questions_of_source(
        cells=(1, text[: text.index("def merge_heads")].count("\n") + 1)
    )
    assert all(re.match(r"Line \d+ of code cell [12]: ", question_.code) for question_ in questions)
    sentences = []
    for question_ in questions:
        sentences += [question_.text, *(option.cause for option in question_.options)]
    assert [
        sentence for sentence in sentences if re.search(r"\bline \d+(?! of code cell)\b", sentence)
    ] == []


def test_an_edit_that_never_ends_is_left_out(questions_of_source):
    source, mask = (
        solution("causal_mask"),
        "return torch.ones(T, T, dtype=torch.bool, device=device).tril()",
    )
    assert mask in source
    loops = source.replace(
        mask, f"n = 0\n    while n < T:\n        n = n + 1\n    {mask.replace('T, T', 'n, n')}"
    )
    assert len(questions_of_source("causal_mask", loops, ASKED)) == ASKED


def test_no_line_of_the_reference_is_shown_where_the_code_is_another(
    questions_of_source,
):
    reference = exercise_of("reshape_dance")
    attempt = next(
        path for path in reference.right_attempts() if "einops" in path.read_text()
    ).read_text()
    written = {line.strip() for line in attempt.splitlines()}
    hidden = {
        line.strip() for line in solution("reshape_dance").splitlines() if len(line.strip()) > 20
    } - written
    texts = []
    for question_ in questions_of_source(text=attempt):
        options = [option.text for option in question_.options]
        texts += [question_.code, question_.text, *options]
    assert texts
    assert [line for line in hidden for text in texts if line in text] == []


@pytest.mark.parametrize("said", ["BADCA", "b, a, d, c, a", "B A D C A"])
def test_letters_are_read_however_they_are_written(said):
    assert read_letters(said, 5, "%ask") == "BADCA"


@pytest.mark.parametrize("said", ["BAD", "BADCAB", "BADCE", ""])
def test_other_letters_are_refused_in_one_sentence(said):
    with pytest.raises(
        CourseFault, match=r"not 5 letters from A to D, or - for none\. Next: %ask AAAAA$"
    ):
        read_letters(said, 5, "%ask")
