"""Questions about an attempt's own code: sound, proved again, the same for the same code and seed, and with causes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from manyheads.authoring.verify.question_claims import is_proved
from manyheads.box.level import Box
from manyheads.box.worker.answers import Output, Raised, Reply
from manyheads.course import Course, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.errors import CourseFault
from manyheads.student.ask_questions import answered, draw, in_full, misconception_of, read_letters
from manyheads.student.question import ASKED, LETTERS, Option, Question, ask
from manyheads.student.question_edits import (
    NOTHING,
    NUMBERS,
    RAISES,
    SHAPE,
    edit_outcome,
    edit_with_outcome,
    outcome,
)
from manyheads.student.question_inputs import positions_moved
from manyheads.student.question_lines import shown_code
from manyheads.student.question_trace import axis_at_line, memory_at_line, origin_at_line, shape_at_line
from manyheads.student.question_versions import Material, material_of
from manyheads.submission import AttemptSource
from tests.student.real import REPOSITORY, exercise_of

Gather = Callable[..., Material]


@pytest.fixture(scope="module")
def real_course() -> Course:
    return load_course(REPOSITORY)


@pytest.fixture
def gather(box: Box, real_course: Course) -> Iterator[Gather]:
    """Gathers what questions about a source are made from; by default the solution of the reshape dance."""
    opened: list[Material] = []

    def gather(
        id_: str = "reshape_dance", text: str | None = None, seed: int = 3, cells: tuple[int, ...] = ()
    ) -> Material:
        exercise = next(exercise for exercise in real_course.exercises if exercise.id == id_)
        source = AttemptSource("own.py", exercise.solution.read_text() if text is None else text, cells=cells)
        limits = real_course.limits.for_worker()
        opened.append(material_of(box, limits, exercise, read(exercise.fingerprints), source, seed))
        return opened[-1]

    yield gather
    for material in opened:
        material.close()


def texts_of(questions: list[Question]) -> list[object]:
    return [(q.code, q.text, [o.text for o in q.options], q.right) for q in questions]


@pytest.mark.parametrize("id_", ["reshape_dance", "causal_mask"])
def test_every_question_has_one_right_option_that_another_run_proves(gather: Gather, id_: str) -> None:
    questions, again = draw(gather(id_), 12), gather(id_)
    assert len(questions) == 12
    assert [q.text for q in questions if not is_proved(q, again)] == []


def test_a_right_option_that_no_run_shows_is_not_proved(gather: Gather) -> None:
    again = gather()
    question = next(q for q in draw(gather(), 12) if q.template == "positions_moved")
    right = question.options[question.right]
    claims = replace(right, text="only at 99", shows="only at 99")
    false = replace(question, wanted="only at 99", options=tuple(claims if o is right else o for o in question.options))
    assert false.is_sound
    assert not is_proved(false, again)


def test_the_same_code_and_seed_give_the_same_questions_and_another_seed_others(gather: Gather) -> None:
    first = texts_of(draw(gather()))
    assert texts_of(draw(gather())) == first
    assert texts_of(draw(gather(seed=4))) != first


def test_the_right_option_stands_anywhere(gather: Gather) -> None:
    assert {question.right for question in draw(gather(), 30)} == set(range(len(LETTERS)))


def test_two_options_that_are_equal_count_once_and_too_few_make_no_question(gather: Gather) -> None:
    rng = gather().rng
    wrong = [Option("1", "a"), Option("2", "b"), Option("1", "c"), Option("3", "d")]
    question = ask("own", "how many?", Option("4", "so many"), wrong, rng)
    assert question is not None
    assert sorted(option.text for option in question.options) == ["1", "2", "3", "4"]
    assert ask("own", "how many?", Option("1", "so many"), wrong, rng) is None


def test_a_wrong_option_is_what_a_misconception_would_give_and_has_its_hint(gather: Gather) -> None:
    material = gather()
    options = [(q, o) for q in draw(material, 30) if q.template == "positions_moved" for o in q.options]
    named = {o.text: found for _, o in options if (found := misconception_of(material, o)) is not None}
    assert named
    question, option = next((q, o) for q, o in options if o.text in named)
    said = answered(material, question, LETTERS[question.options.index(option)])
    assert not said.is_right
    assert said.why.startswith("That is what you get if line ")
    assert said.why.endswith(f"{named[option.text].title} {named[option.text].hint}")


def test_what_is_said_of_an_answer_names_the_input_and_its_position(gather: Gather) -> None:
    material = gather()
    asked = next(q for q in positions_moved(material) if q is not None)
    place, name = re.findall(r"only position (\d+) of (\w+) ", asked.text)[0]
    causes = [option.cause for option in asked.options if option.edit is None]
    assert all(f" on position {place} of {name}" in cause or "at these positions" in cause for cause in causes)
    assert asked.options[asked.right].cause.startswith("In your code ")


def test_an_outcome_is_not_told_twice(gather: Gather) -> None:
    asked = next(q for q in edit_outcome(gather()) if q is not None)
    assert in_full(asked).count(asked.options[asked.right].text) == 1


def test_the_right_answer_is_told_with_why(gather: Gather) -> None:
    material = gather()
    question = draw(material)[0]
    letter = LETTERS[question.right]
    assert answered(material, question, letter).is_right
    assert in_full(question).startswith(f"It is {letter}: {question.options[question.right].text}. ")


def test_a_comment_that_may_say_what_is_asked_is_not_shown(gather: Gather) -> None:
    questions = draw(gather("attention_scores"), 30)
    assert any(question.code for question in questions)
    shown = [text for q in questions for text in (q.code, q.text, *(o.text for o in q.options))]
    assert [text for text in shown if "  #" in text] == []
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
LINES = UNCLEAR.splitlines()


def lines_asked(template: Callable[[Material], Iterator[Question | None]], material: Material) -> set[str]:
    return {q.code.partition(": ")[2] for q in template(material) if q is not None}


def test_a_line_is_asked_about_only_where_it_has_one_result_and_the_same_in_each_visit(gather: Gather) -> None:
    material = gather(text=UNCLEAR)
    clear = {
        "return y.transpose(1, 2)",
        "scaled = (x * 1.0).view(B, T, n_head, hd)",
        "copied = x.transpose(0, 1).contiguous().view(T, B, n_head, hd)",
        "return scaled.transpose(1, 2)",
        "out = y.new_empty(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])",
    }
    assert lines_asked(shape_at_line, material) == clear
    assert lines_asked(axis_at_line, material) == clear
    assert lines_asked(origin_at_line, material) <= clear


def test_memory_is_asked_about_only_where_the_whole_line_does_one_thing_to_it(gather: Gather) -> None:
    assert lines_asked(memory_at_line, gather(text=UNCLEAR)) == {
        "return y.transpose(1, 2)",
        "return scaled.transpose(1, 2)",
    }
    whole = "return y.transpose(1, 2).contiguous().view(B, T, nh * hd)"  # a copy, read in another way
    assert whole in lines_asked(shape_at_line, gather())
    assert whole not in lines_asked(memory_at_line, gather())


def test_what_is_no_tensor_or_has_another_dtype_is_called_neither_the_same_nor_an_exception() -> None:
    def of(*tensors: torch.Tensor | None) -> Reply:
        return Reply(outputs=tuple(Output(kind="tensor", tensor=tensor) for tensor in tensors))

    own = of(torch.ones(2, 3))
    assert outcome(of(torch.ones(2, 3)), own) == NOTHING
    assert outcome(of(torch.zeros(2, 3)), own) == NUMBERS
    assert outcome(of(torch.ones(3, 2)), own) == SHAPE
    others = (of(torch.ones(2, 3).bool()), of(None), of(torch.ones(())), of(torch.ones(2, 3), torch.ones(2, 3)), None)
    assert [outcome(other, own) for other in others] == [""] * 5
    assert outcome(Reply(raised=Raised("NameError", (), "", "call", None)), own) == ""


def test_positions_that_the_result_does_not_have_are_no_options(gather: Gather) -> None:
    for question in filter(None, positions_moved(gather("attention_scores"))):
        counts = {option.text for option in question.options if option.text.startswith("at all ")}
        assert len(counts) <= 1


def test_versions_that_leave_memory_unset_are_no_options_for_their_numbers_are_chance(gather: Gather) -> None:
    material = gather(text=UNCLEAR)
    assert {q.wanted for q in edit_outcome(material) if q is not None} <= {RAISES, SHAPE}
    moved = list(filter(None, positions_moved(material)))
    assert moved
    assert {option.edit for question in moved for option in question.options} == {None}


def test_of_several_results_the_first_is_asked_about_and_said_to_be(gather: Gather) -> None:
    material = gather("kv_cache")
    assert [small for small in material.smalls if small.call.then] == []
    questions = [q for template in (edit_outcome, edit_with_outcome) for q in template(material) if q is not None]
    assert questions
    assert all(q.text.endswith(" Only its first result counts.") for q in questions)
    assert all("of its first result, do" in q.text for q in positions_moved(material) if q is not None)


def test_a_row_that_is_cut_is_said_to_be_and_edits_can_be_read(gather: Gather) -> None:
    questions = draw(gather(), 40)
    rows = [(q, len(o.text.split(","))) for q in questions if q.template == "easy_row" for o in q.options]
    assert {count for _, count in rows} <= {5, 6}
    assert all(("its first 6 numbers" in q.text) == (count == 6) for q, count in rows)
    assert [
        v.after for small in gather().smalls for v in small.versions if "self." in v.after
    ] == []  # no class is there
    assert max(len(version.after) for small in gather("mha_by_loop").smalls for version in small.versions) <= 120


def test_lines_of_a_notebook_are_called_by_their_cells(gather: Gather) -> None:
    text = exercise_of("reshape_dance").solution.read_text()
    middle = text[: text.index("def merge_heads")].count("\n") + 1
    questions = draw(gather(cells=(1, middle)), 12)
    lines = [question.code for question in questions if question.code]
    assert lines
    assert all(line.startswith("Line ") and " of code cell " in line for line in lines)


def test_an_edit_that_never_ends_is_left_out(gather: Gather) -> None:
    source = exercise_of("causal_mask").solution.read_text()
    loops = source.replace(
        "return torch.ones(T, T, dtype=torch.bool, device=device).tril()",
        "n = 0\n    while n < T:\n        n = n + 1\n    return torch.ones(n, n, dtype=torch.bool, device=device).tril()",
    )
    assert loops != source
    assert len(draw(gather("causal_mask", loops))) == ASKED


def test_no_line_of_the_reference_is_shown_where_the_code_is_another(gather: Gather) -> None:
    reference = exercise_of("reshape_dance")
    other = next(path for path in reference.right_attempts() if "einops" in path.read_text()).read_text()
    written = {line.strip() for line in other.splitlines()}
    hidden = {line.strip() for line in reference.solution.read_text().splitlines() if len(line.strip()) > 20} - written
    shown = [text for q in draw(gather(text=other), 30) for text in (q.code, q.text, *(o.text for o in q.options))]
    assert shown
    assert [line for line in hidden for text in shown if line in text] == []


@pytest.mark.parametrize("said", ["BADCA", "b, a, d, c, a", "B A D C A"])
def test_letters_are_read_however_they_are_written(said: str) -> None:
    assert read_letters(said, 5) == list("BADCA")


@pytest.mark.parametrize("said", ["BAD", "BADCAB", "BADCE", ""])
def test_other_letters_are_refused_in_one_sentence(said: str) -> None:
    with pytest.raises(
        CourseFault, match=r"is not 5 letters from A to D, or - for none\. Next: the same with letters such as AAAAA"
    ):
        read_letters(said, 5)
