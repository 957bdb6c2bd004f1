"""Multiple-choice questions about an attempt's own code.

Each question has one right option and a reason for each option.
"""

import random
import re

import pytest
import torch

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
from tests.student.real import exercise_of, load_real_course, reference_source

DANCE = "reshape_dance"
# a phrase of the text of each kind of question
SHAPES, AXES, ORIGINS, EDITS = (
    "Which shape ",
    "What does axis ",
    "Which number ",
    "What comes of it?",
)


@pytest.fixture
def ask_about(box):
    """Return a function that asks questions about a source, by default about the reference."""

    def ask_questions(
        id_: str = DANCE, text: str = "", count: int = 1000, seed: int = 3, **fields: object
    ) -> list[Question]:
        exercise, limits = exercise_of(id_), load_real_course().limits.for_worker()
        source = Source("own.py", text or reference_source(id_), **fields)
        recording = read(exercise.fingerprints)
        return questions_about(box, limits, exercise, recording, source, seed, count)

    return ask_questions


def of_kind(phrase: str, questions: list[Question]) -> list[Question]:
    """Return the questions with this phrase, of which there is at least one."""
    matches = [question_ for question_ in questions if phrase in question_.text]
    assert matches
    return matches


def right_text(question_: Question) -> str:
    """Return the text of the right option."""
    return question_.options[question_.correct_index].text


@pytest.mark.parametrize("exercise", load_real_course().exercises, ids=lambda exercise: exercise.id)
def test_a_right_attempt_gives_five_questions(ask_about, exercise):
    questions = ask_about(exercise.id, exercise.right_attempts()[-1].read_text(), ASKED)
    assert len(questions) == ASKED
    for question_ in questions:
        assert len({option.text for option in question_.options}) == len(LETTERS)
        assert all(option.cause for option in question_.options)


def test_the_seed_decides_which_questions_are_asked(ask_about):
    questions = ask_about(count=ASKED)
    assert ask_about(count=ASKED) == questions
    assert ask_about(count=ASKED, seed=4) != questions


def returned_value(number: int, line: str, call: str, sizes: dict[str, int]) -> object:
    """Return the result of this call of the reference, or its exception.

    number, line: the line of the reference that is replaced, and its replacement.
    sizes: the sizes of the arguments x and y, by axis.
    """
    lines = reference_source(DANCE).splitlines()
    old = lines[number - 1]
    lines[number - 1] = old[: len(old) - len(old.lstrip())] + line
    namespace: dict[str, object] = {}
    for name, axes in (("x", ("B", "T", "C")), ("y", ("B", "nh", "T", "hd"))):
        shape = torch.Size(sizes[axis] for axis in axes)
        namespace[name] = torch.arange(shape.numel()).view(shape)
    exec("\n".join(lines), namespace)
    try:
        return eval(call, namespace)
    except Exception as error:
        return error


def computed_answer(question_: Question) -> str:
    """Return the right answer of a question about the reference, computed in this process."""
    call = question_.text.partition(" runs with ")[0]
    sizes = {name: int(size) for name, size in re.findall(r"(\w+) = (\d+)", question_.text)}
    number, code = question_.code.removeprefix("Line ").split(": ", 1)
    if edit := re.findall(r" becomes `(.*)`\. ", question_.text):
        original, edited = (
            returned_value(int(number), line, call, sizes) for line in (code, edit[0])
        )
        if not isinstance(edited, torch.Tensor):
            return RAISES
        if edited.shape != original.shape:
            return SHAPE
        return NOTHING if edited.equal(original) else NUMBERS
    value = returned_value(int(number), re.sub(r"^(return|\w+ =) ", "return ", code), call, sizes)
    if SHAPES in question_.text:
        return str(tuple(value.shape))
    if AXES in question_.text:
        size = value.shape[int(re.findall(r"axis (\d)", question_.text)[0])]
        return next(f"{name}, {size} of them" for name, n in sizes.items() if n == size)
    position = re.findall(r"stands at \[(.*?)\]", question_.text)[0]
    return str(int(value[tuple(map(int, position.split(", ")))]))


def test_the_right_option_is_correct_and_its_position_varies(ask_about):
    questions = ask_about()
    for phrase in (SHAPES, AXES, ORIGINS, EDITS):
        for question_ in of_kind(phrase, questions):
            assert right_text(question_) == computed_answer(question_)
    assert len({question_.correct_index for question_ in questions}) == len(LETTERS)


def test_equal_options_count_once_and_a_question_needs_four():
    distractors = [Option("1", "a"), Option("2", "b"), Option("1", "c"), Option("3", "d")]
    asked = question(random.Random(1), "how many?", "", Option("4", "so many"), distractors)
    assert sorted(option.text for option in asked.options) == ["1", "2", "3", "4"]
    assert right_text(asked) == "4"
    assert question(random.Random(1), "how many?", "", Option("1", "so many"), distractors) is None


@pytest.mark.parametrize("id_", [DANCE, "attention_scores"])
def test_the_answer_is_not_revealed_before_a_second_try(ask_about, id_):
    revealing = re.compile(r"one axis more|gone|other way round|joined|[Ii]ts size is|comes to")
    for question_ in ask_about(id_):
        assert "  #" not in question_.code + question_.text  # a comment may say the answer
        correct = right_text(question_)
        for letter in LETTERS.replace(LETTERS[question_.correct_index], ""):
            (feedback,) = answer_lines(question_, letter, shows_right=False)
            assert feedback.plain.startswith("✗ ")
            if ORIGINS not in question_.text:  # there, an index [8, 2] may contain the answer 8
                assert correct not in feedback.plain
            assert not revealing.search(feedback.plain)
            feedback_lines = answer_lines(question_, letter, shows_right=True)
            assert correct in "".join(line.plain for line in feedback_lines)


def test_comments_are_removed_from_shown_code():
    assert shown_code('y = x["#"] + f(  # that is "(B, T)"') == 'y = x["#"] + f('
    assert shown_code("    .view(B, T)  # it's a view") == ".view(B, T)"


# most lines have several results, or results that differ between visits
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


def shown_lines(phrase: str, questions: list[Question]) -> set[str]:
    """Return the lines of code that the questions with this phrase show, without line numbers."""
    return {question_.code.partition(": ")[2] for question_ in of_kind(phrase, questions)}


def test_questions_are_about_lines_with_one_result_in_every_visit(ask_about):
    questions = ask_about(text=UNCLEAR)
    shapes, axes, origins = (shown_lines(phrase, questions) for phrase in (SHAPES, AXES, ORIGINS))
    assert shapes == {
        "return y.transpose(1, 2)",
        "scaled = (x * 1.0).view(B, T, n_head, hd)",
        "copied = x.transpose(0, 1).contiguous().view(T, B, n_head, hd)",
        "return scaled.transpose(1, 2)",
        "out = y.new_empty(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])",
    }
    assert axes == shapes
    assert origins <= shapes
    # never NUMBERS: the memory of new_empty may stay unset, so its numbers vary
    assert set(map(right_text, of_kind(EDITS, questions))) == {RAISES, SHAPE}


def test_an_edit_has_an_outcome_only_if_its_output_can_be_compared():
    def outcome_of(*tensors: torch.Tensor | None) -> str:
        reply = Reply(outputs=tuple(Output(kind="tensor", tensor=tensor) for tensor in tensors))
        return outcome(reply, original)

    x = torch.ones(2, 3)
    original = Reply(outputs=(Output(kind="tensor", tensor=x),))
    for tensor, expected in ((x, NOTHING), (x * 0, NUMBERS), (x.T, SHAPE)):
        assert outcome_of(tensor) == expected
    for tensors in ([x.bool()], [None], [torch.ones(())], [x, x]):
        assert outcome_of(*tensors) == ""
    assert outcome(None, original) == ""
    assert outcome(Reply(raised=Raised("NameError", (), "", "call", None)), original) == ""


def test_questions_are_about_the_first_of_several_results(ask_about):
    for question_ in of_kind(EDITS, ask_about("kv_cache")):
        assert question_.text.endswith(" Only its first result counts.")


def test_edits_are_short_and_use_no_self_in_a_function(ask_about):
    for question_ in of_kind(EDITS, [*ask_about(), *ask_about("mha_by_loop")]):
        for line in re.findall("`(.*)`", question_.text):
            assert "self." not in line
            assert len(line) <= 120


def test_lines_of_a_notebook_are_named_with_their_cells(ask_about):
    second_cell = reference_source(DANCE).partition("def merge_heads")[0].count("\n") + 1
    for question_ in ask_about(cells=(1, second_cell)):
        assert re.match(r"Line \d+ of code cell [12]: ", question_.code)
        for text in (question_.text, *(option.cause for option in question_.options)):
            assert not re.search(r"\bline \d+(?! of code cell)\b", text)


def test_an_edit_that_makes_an_endless_loop_is_left_out(ask_about):
    mask = "return torch.ones(T, T, dtype=torch.bool, device=device).tril()"
    head, line, tail = reference_source("causal_mask").partition(mask)
    assert line
    loop = f"n = 0\n    while n < T:\n        n = n + 1\n    {mask.replace('T, T', 'n, n')}"
    assert len(ask_about("causal_mask", head + loop + tail, ASKED)) == ASKED


def test_questions_about_another_attempt_show_no_line_of_the_reference(ask_about):
    (attempt, *_) = (
        text
        for path in exercise_of(DANCE).right_attempts()
        if "einops" in (text := path.read_text())
    )
    reference = map(str.strip, reference_source(DANCE).splitlines())
    hidden = [line for line in reference if len(line) > 20 and line not in attempt]
    questions = ask_about(text=attempt)
    assert questions
    for question_ in questions:
        options = [option.text for option in question_.options]
        question_text = "\n".join([question_.code, question_.text, *options])
        assert [line for line in hidden if line in question_text] == []


@pytest.mark.parametrize("letters", ["BADCA", "b, a, d, c, a"])
def test_answer_letters_are_accepted_in_several_spellings(letters):
    assert read_letters(letters, 5, "%ask") == "BADCA"


@pytest.mark.parametrize("letters", ["BAD", "BADCAB", "BADCE", ""])
def test_invalid_answer_letters_are_rejected_with_an_example(letters):
    message = r"not 5 letters from A to D, or - for none\. Next: %ask AAAAA$"
    with pytest.raises(CourseFault, match=message):
        read_letters(letters, 5, "%ask")
