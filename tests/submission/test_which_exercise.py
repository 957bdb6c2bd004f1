"""The exercise of a submitted file is found by the file's name, or else by its definitions."""

import time

import pytest

from manyheads.submission import find_submitted_files as find
from manyheads.submission.find_submitted_files import Exercises, NotPlaced, assignment_of_file
from manyheads.submission.read import IntakeLimits
from manyheads.submission.source import decode_text
from tests.make import cases, notebook

from .conftest import DANCE, zip_bytes

NAMES = """\
04_reshape_dance (1).py
04_reshape_dance(12).py
04_reshape_dance-1-2.py
04-reshape-dance.ipynb
4 Reshape Dance.py
reshape_dance.py
04_reshape_dance-Copy1.ipynb
04_reshape_dance - Copy.py
04_reshape_dance - Kopie (2).py
04_reshape_dance_final_v2.py
ada_lovelace_04_reshape_dance.py
hw reshape dance ada.py
04_reshape_dance (1) (2)-3_final_v2 - Copy (4).py
04_reshape_dance..............................(1).py""".splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_the_exercise_is_found_by_the_file_name(real_course, name):
    assert Exercises(real_course).exercise_of(name, b"").id == "reshape_dance"


@pytest.mark.parametrize(
    ("name", "content", "exercise"),
    [
        ("homework.py", b"def split_heads(x, n): ...\ndef merge_heads(y): ...\n", "reshape_dance"),
        ("colab.py", b"!pip install einops\ndef split_heads(x, n): ...\n", "reshape_dance"),
        (
            "homework.py",
            b"class CausalSelfAttention: ...\ndef gpt2_attention(size): ...\n",
            "fused_qkv",
        ),
        (
            "Untitled3.ipynb",
            notebook("%matplotlib inline\nclass CausalAttention:\n    pass").encode(),
            "self_attention",
        ),
        ("attention.py", "# ä\ndef mha_by_loop(mha, x): ...\n".encode("utf-8-sig"), "mha_by_loop"),
    ],
)
def test_the_exercise_is_found_by_the_definitions_in_the_file(real_course, name, content, exercise):
    assert Exercises(real_course).exercise_of(name, content).id == exercise


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        # two exercises define this class
        ("homework.py", b"class CausalSelfAttention: ...\n", "nothing that one exercise alone"),
        # exercises of two assignments
        (
            "all.py",
            b"def split_heads(): ...\ndef rotate(): ...\n",
            "may be of reshape_dance, rotary",
        ),
        ("helpers.py", b"def helper(): ...\n", "defines nothing"),
        ("no_python.py", b"def split_heads(:\n", "defines nothing"),
        ("latin.py", b"def split_heads(): '\xe9'\n", "defines nothing"),
        ("no_notebook.ipynb", b"{", "defines nothing"),
        ("deep.py", b"(" * 100_000, "defines nothing"),
        ("main.py", b"if __name__ == '__main__':\n    def split_heads(): ...\n", "nothing"),
    ],
)
def test_a_file_without_an_exercise_is_reported(real_course, name, content, reason):
    with pytest.raises(NotPlaced, match=reason) as caught:
        Exercises(real_course).exercise_of(name, content)
    assert str(caught.value).endswith(
        "Next: rename it to the exercise that it is, if it was to be graded"
    )


POSSIBLE_WORK = """\
solution.py
a/b/Untitled12.IPYNB
work.zip
work.tar.gz
src
04_reshape_dance.docx
04_reshape_dance.py.txt
hand in/Reshape Dance (1).pdf
multi_head_attention.html""".splitlines()
OTHER_FILES = """\
notes.md
ada/screenshot.png
feedback.pdf
04_reshape_dance.safetensors
figures/04_reshape_dance.svg""".splitlines()


@pytest.mark.parametrize("path", [*POSSIBLE_WORK, *OTHER_FILES])
def test_possible_work_is_recognised_by_the_file_name(real_course, path):
    """A student whose file may be work, but cannot be read, must not get 0 points."""
    assert Exercises(real_course).may_be_work(path) is (path in POSSIBLE_WORK)


def test_finding_the_exercise_does_not_run_the_code(real_course, tmp_path):
    source = f"open({str(tmp_path / 'ran')!r}, 'w')\ndef split_heads(): ...\n"
    assert Exercises(real_course).exercise_of("x.py", source.encode()).id == "reshape_dance"
    assert not (tmp_path / "ran").exists()


def test_a_file_without_any_name_of_an_exercise_is_not_parsed(real_course, monkeypatch):
    monkeypatch.setattr(find, "decode_text", lambda data: pytest.fail("parsed"))
    with pytest.raises(NotPlaced, match="defines nothing"):
        Exercises(real_course).exercise_of("model.py", b"def helper(): ...\n")


@pytest.mark.parametrize("name", ["04_reshape_dance.py", "homework.py"])
def test_the_amount_of_parsed_code_per_student_is_limited(
    collect_files, write_zip, monkeypatch, name
):
    parsed_sizes = list[int]()

    def count_and_decode(data: bytes) -> str:
        parsed_sizes.append(len(data))
        return decode_text(data)

    monkeypatch.setattr(find, "decode_text", count_and_decode)
    many_copies = {f"{i}/{name}": f"{DANCE}# {i}{'x' * 150_000}\n" for i in range(40)}
    download = write_zip(
        {"lovelaceada_1_2_all.zip": zip_bytes(many_copies), "hopperbela_3_4_homework.py": DANCE}
    )
    collected = collect_files(download)
    assert sum(parsed_sizes) < 2 * IntakeLimits().code + 400_000
    assert [file.student for file in collected.candidates] == ["hopperbela_3"]
    assert (
        "/homework.py has no exercise's name" in collected.not_taken[0]
        or "are of the same exercise" in collected.not_taken[0]
    )


@cases(
    "name, content",
    {
        "by what it defines": ("homework.py", b"def split_heads(): ...\ndef causal_mask(): ...\n"),
        "by its name": ("multi_head_attention.py", b"def split_heads(): ...\n"),
        "by its name with more behind it": ("Multi-Head-Attention (1).py", b""),
    },
)
def test_a_file_with_several_exercises_belongs_to_their_assignment(real_course, name, content):
    target = Exercises(real_course).exercise_of(name, content)
    assert assignment_of_file(target) == (real_course.assignments[0], "multi_head_attention")


MAX_STEM_LENGTH = 240  # characters of a name without its number and its ending: 255 are the most
ENDS_AS_COPIES_DO = [
    f"{prefix}{unit * ((MAX_STEM_LENGTH - len(prefix)) // len(unit))}"
    for prefix in ("", "a", "." * 100, "-." * 60, "a" * 120)
    for unit in (
        "_1",
        "(1)",
        "_copy",
        "copy",
        "_v1",
        "_final",
        "._1",
        ".(1)",
        "..copy",
        f"{'.' * 40}(1)",
        "- ",
        ".py",
    )
]


def test_file_names_with_very_many_suffixes_are_read_quickly(collect_files, write_zip):
    """Each such name once took up to 14 ms, and the time limit is only checked between archives:
    5,000 names took 70 seconds with a limit of 30.
    """
    many_copies = [
        f"{number:04}{ENDS_AS_COPIES_DO[number % len(ENDS_AS_COPIES_DO)]}.py"
        for number in range(1000)
    ]
    archive = write_zip(
        {
            "ada/work.zip": zip_bytes(dict.fromkeys(many_copies, "x = 1\n")),
            "ben/04_reshape_dance.py": DANCE,
        }
    )
    start = time.process_time()
    collect_files(archive)
    seconds = (time.process_time() - start) * IntakeLimits().members / len(many_copies)
    assert seconds < IntakeLimits().seconds / 6
