"""Questions about an attempt's own code: right, the same for the same code and seed, and each option with its reason."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
import torch

from manyheads.box.level import Box
from manyheads.box.worker.answers import Output, Raised, Reply
from manyheads.course import Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.errors import CourseFault
from manyheads.student.ask_questions import NOTHING, NUMBERS, RAISES, SHAPE, outcome, questions_about
from manyheads.student.question import ASKED, LETTERS, Option, Question, question, read_letters
from manyheads.student.question_lines import shown_code
from manyheads.submission import AttemptSource
from tests.student.real import course, exercise_of, solution

Ask = Callable[..., list[Question]]
EVERY = 1000  # more than there are
OF_SHAPES, OF_AXES, OF_NUMBERS, OF_EDITS = "Which shape ", "What does axis ", "Which number ", "What comes of it?"


@pytest.fixture
def asked(box: Box) -> Ask:
    """Questions about a source; by default about the solution of the reshape dance."""

    def asked(
        about: str | Exercise = "reshape_dance",
        text: str | None = None,
        count: int = EVERY,
        seed: int = 3,
        cells: tuple[int, ...] = (),
    ) -> list[Question]:
        exercise = next(e for e in course().exercises if e.id == about) if isinstance(about, str) else about
        source = AttemptSource("own.py", exercise.solution.read_text() if text is None else text, cells=cells)
        limits, recorded = course().limits.for_worker(), read(exercise.fingerprints)
        return questions_about(box, limits, exercise, recorded, source, seed, count)

    return asked


def of_kind(kind: str, questions: list[Question]) -> list[Question]:
    return [each for each in questions if kind in each.text]


@pytest.mark.parametrize("exercise", course().exercises, ids=lambda exercise: exercise.id)
def test_a_right_attempt_gives_five_questions_and_the_same_in_another_run(asked: Ask, exercise: Exercise) -> None:
    own = exercise.right_attempts()[-1].read_text()
    questions = asked(exercise, own, ASKED)
    assert len(questions) == ASKED
    assert all(len({option.text for option in each.options}) == len(LETTERS) for each in questions)
    assert all(option.cause for each in questions for option in each.options)
    assert asked(exercise, own, ASKED) == questions


def returned(text: str, number: int, line: str, call: str, sizes: dict[str, int]) -> object:
    """What a call returns with another line in place of this one; the exception that it raises."""
    lines = text.splitlines()
    old = lines[number - 1]
    lines[number - 1] = old[: len(old) - len(old.lstrip())] + line
    shapes = {"x": ("B", "T", "C"), "y": ("B", "nh", "T", "hd")}
    counted = {n: torch.arange(6300.0)[: torch.Size([sizes[a] for a in s]).numel()] for n, s in shapes.items()}
    namespace: dict[str, object] = {n: counted[n].view([sizes[a] for a in s]) for n, s in shapes.items()}
    exec("\n".join(lines), namespace)
    try:
        return eval(call, namespace)
    except Exception as error:
        return error


def right_option(each: Question, text: str) -> str:
    """The right option, by the code itself, without the box."""
    call = each.text.partition(" runs with ")[0]
    sizes = {name: int(size) for name, size in re.findall(r"(\w+) = (\d+)", each.text)}
    number, code = re.fullmatch(r"Line (\d+): (.*)", each.code).groups()  # type: ignore[union-attr]
    if OF_EDITS in each.text:
        edit = re.findall(r" becomes `(.*)`\. ", each.text)[0]
        own, edited = (returned(text, int(number), line, call, sizes) for line in (code, edit))
        assert isinstance(own, torch.Tensor)
        if isinstance(edited, Exception):
            return RAISES
        assert isinstance(edited, torch.Tensor)
        return SHAPE if edited.shape != own.shape else NOTHING if edited.equal(own) else NUMBERS
    whole = returned(text, int(number), re.sub(r"^(return|\w+ =) ", "return ", code), call, sizes)
    assert isinstance(whole, torch.Tensor)
    if OF_SHAPES in each.text:
        return str(tuple(whole.shape))
    if OF_AXES in each.text:
        size = whole.shape[int(re.findall(r"axis (\d)", each.text)[0])]
        return next(f"{name}, {size} of them" for name, known in sizes.items() if known == size)
    return str(int(whole[eval(re.findall(r"stands at (\[.*?\])", each.text)[0].strip("[]"))]))


@pytest.mark.parametrize("kind", [OF_SHAPES, OF_AXES, OF_NUMBERS, OF_EDITS])
def test_the_right_option_is_what_the_code_does(asked: Ask, kind: str) -> None:
    questions, text = of_kind(kind, asked()), solution("reshape_dance")
    assert questions
    assert [each.options[each.right].text for each in questions] == [right_option(each, text) for each in questions]


def test_another_seed_gives_other_questions(asked: Ask) -> None:
    assert asked(count=ASKED, seed=4) != asked(count=ASKED)


def test_the_right_option_stands_anywhere(asked: Ask) -> None:
    assert {each.right for each in asked()} == set(range(len(LETTERS)))


def test_two_options_that_are_equal_count_once_and_too_few_make_no_question() -> None:
    rng = random.Random(1)
    wrong = [Option("1", "a"), Option("2", "b"), Option("1", "c"), Option("3", "d")]
    found = question(rng, "how many?", "", Option("4", "so many"), wrong)
    assert found is not None
    assert sorted(option.text for option in found.options) == ["1", "2", "3", "4"]
    assert found.options[found.right].text == "4"
    assert question(rng, "how many?", "", Option("1", "so many"), wrong) is None


def test_a_comment_that_may_say_what_is_asked_is_not_shown(asked: Ask) -> None:
    questions = asked("attention_scores")
    assert [text for each in questions for text in (each.code, each.text) if "  #" in text] == []
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


def test_a_line_is_asked_about_only_where_it_has_one_result_and_the_same_in_each_visit(asked: Ask) -> None:
    questions = asked(text=UNCLEAR)
    lines = {
        kind: {each.code.partition(": ")[2] for each in of_kind(kind, questions)}
        for kind in (OF_SHAPES, OF_AXES, OF_NUMBERS)
    }
    clear = {
        "return y.transpose(1, 2)",
        "scaled = (x * 1.0).view(B, T, n_head, hd)",
        "copied = x.transpose(0, 1).contiguous().view(T, B, n_head, hd)",
        "return scaled.transpose(1, 2)",
        "out = y.new_empty(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])",
    }
    assert lines[OF_SHAPES] == lines[OF_AXES] == clear
    assert lines[OF_NUMBERS]
    assert lines[OF_NUMBERS] <= clear


def test_versions_that_leave_memory_unset_are_not_asked_about_where_numbers_tell_for_these_are_chance(
    asked: Ask,
) -> None:
    edits = of_kind(OF_EDITS, asked(text=UNCLEAR))
    assert {each.options[each.right].text for each in edits} == {RAISES, SHAPE}


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


def test_of_several_results_the_first_is_asked_about_and_said_to_be(asked: Ask) -> None:
    edits = of_kind(OF_EDITS, asked("kv_cache"))
    assert edits
    assert all(each.text.endswith(" Only its first result counts.") for each in edits)


def test_edits_can_be_read_and_name_no_self_where_no_class_is(asked: Ask) -> None:
    lines = [
        line for id_ in ("reshape_dance", "mha_by_loop") for e in asked(id_) for line in re.findall("`(.*)`", e.text)
    ]
    assert [line for line in lines if "self." in line or len(line) > 120] == []


def test_lines_of_a_notebook_are_called_by_their_cells(asked: Ask) -> None:
    text = solution("reshape_dance")
    middle = text[: text.index("def merge_heads")].count("\n") + 1
    questions = asked(cells=(1, middle))
    assert all(re.match(r"Line \d+ of code cell [12]: ", each.code) for each in questions)
    told = [each.text for each in questions] + [option.cause for each in questions for option in each.options]
    assert [said for said in told if re.search(r"\bline \d+(?! of code cell)\b", said)] == []


def test_an_edit_that_never_ends_is_left_out(asked: Ask) -> None:
    source = exercise_of("causal_mask").solution.read_text()
    loops = source.replace(
        "return torch.ones(T, T, dtype=torch.bool, device=device).tril()",
        "n = 0\n    while n < T:\n        n = n + 1\n    return torch.ones(n, n, dtype=torch.bool, device=device).tril()",
    )
    assert loops != source
    assert len(asked("causal_mask", loops, ASKED)) == ASKED


def test_no_line_of_the_reference_is_shown_where_the_code_is_another(asked: Ask) -> None:
    reference = exercise_of("reshape_dance")
    other = next(path for path in reference.right_attempts() if "einops" in path.read_text()).read_text()
    written = {line.strip() for line in other.splitlines()}
    hidden = {line.strip() for line in reference.solution.read_text().splitlines() if len(line.strip()) > 20} - written
    shown = [text for q in asked(text=other) for text in (q.code, q.text, *(o.text for o in q.options))]
    assert shown
    assert [line for line in hidden for text in shown if line in text] == []


@pytest.mark.parametrize("said", ["BADCA", "b, a, d, c, a", "B A D C A"])
def test_letters_are_read_however_they_are_written(said: str) -> None:
    assert read_letters(said, 5) == "BADCA"


@pytest.mark.parametrize("said", ["BAD", "BADCAB", "BADCE", ""])
def test_other_letters_are_refused_in_one_sentence(said: str) -> None:
    with pytest.raises(
        CourseFault, match=r"is not 5 letters from A to D, or - for none\. Next: the same with letters such as AAAAA"
    ):
        read_letters(said, 5)
