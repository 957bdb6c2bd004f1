"""`course generate` in a folder as a student has it: with a right cache, a wrong one, one that is not written."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Exercise
from tests.student.real import REPOSITORY, course

Run = Callable[..., subprocess.CompletedProcess[str]]
EXERCISE: Exercise = next(each for each in course().exercises if each.generate is not None)
SOLUTION = EXERCISE.solution.read_text(encoding="utf-8")
SHORT = ("generate", "--steps", "2", "--max-new-tokens", "24")
KEEPS_TOKENS = """
import torch
from torch import nn
import torch.nn.functional as F


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        text = x if cache is None else torch.cat([cache["x"], x], 1)
        B, T, C = text.shape
        q, k, v = (part.view(B, T, self.n_head, -1).transpose(1, 2) for part in self.qkv(text).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
        return self.proj(y)[:, -x.shape[1] :], {"x": text}
"""
MASK = "key > query"

pytestmark = pytest.mark.journey  # a language model learns a little, in processes of their own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A student's folder with one exercise, of which nothing is written."""
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    for path in (EXERCISE.script, EXERCISE.fingerprints):
        target = tmp_path / path.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True)
        shutil.copy(path, target)
    return tmp_path


def write(folder: Path, source: str) -> None:
    (folder / EXERCISE.script.relative_to(REPOSITORY)).write_text(source, encoding="utf-8")


@pytest.mark.parametrize("source", [SOLUTION, KEEPS_TOKENS], ids=["keeps keys and values", "keeps the tokens"])
def test_a_right_cache_writes_what_is_written_without(run_course: Run, folder: Path, source: str) -> None:
    write(folder, source)
    done = run_course(*SHORT, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    learns, writes, text, *_, verdict, took, following = done.stdout.splitlines()
    assert learns == "It learns first, 2 steps, with this module and no cache."
    assert writes == "It writes, with the cache:"
    assert text.startswith("  Alice ")
    assert verdict.startswith("✓ The same text without a cache: the logits differ by at most ")
    assert took.startswith("A token takes ")
    assert following == f"Next: course check {EXERCISE.id}"


def test_what_it_learned_is_kept_also_when_the_code_changes(run_course: Run, folder: Path) -> None:
    write(folder, SOLUTION)
    first = run_course(*SHORT, cwd=folder).stdout.splitlines()[1:-2]
    weights = f"plots/{EXERCISE.id}_weights.safetensors"
    assert (folder / weights).exists()
    again = run_course("generate", "--max-new-tokens", "24", cwd=folder)
    assert again.stdout.splitlines()[0] == f"It knows what it learned, in 2 steps ({weights}; --steps 600: anew)."
    assert again.stdout.splitlines()[1:-2] == first
    write(folder, KEEPS_TOKENS)
    other = run_course("generate", "--max-new-tokens", "24", "--temperature", "0", "--prompt", "The", cwd=folder)
    assert other.returncode == 0
    assert "learned with an earlier version of your code" in other.stdout.splitlines()[0]
    assert "  The" in other.stdout


def test_a_mask_from_the_top_left_is_told_to_be_checked(run_course: Run, folder: Path) -> None:
    assert SOLUTION.count(MASK) == 1
    write(folder, SOLUTION.replace(MASK, "key > query - past"))
    done = run_course(*SHORT, cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ Your cache changes what the model says: at character 1 of its text" in done.stdout
    assert done.stdout.endswith(f"\nNext: course check {EXERCISE.id}\n")


def test_a_cache_that_is_not_written_is_said_in_one_sentence(run_course: Run, folder: Path) -> None:
    write(
        folder,
        SOLUTION.replace(
            "        if cache is not None:\n", "        if cache is not None:\n            raise NotImplementedError\n"
        ),
    )
    done = run_course(*SHORT, cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ Your code raised NotImplementedError on line" in done.stdout
    assert "while it wrote with the cache" in done.stdout
    assert done.stdout.endswith(f"\nNext: course check {EXERCISE.id}\n")


def test_the_output_alone_is_said_to_lack_the_cache(run_course: Run, folder: Path) -> None:
    write(folder, SOLUTION.replace("return self.proj(y), (k, v)", "return self.proj(y)"))
    done = run_course(*SHORT, cwd=folder)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == [
        "✗ CachedSelfAttention returns a tensor; a pair (y, cache) is asked.",
        f"Next: course check {EXERCISE.id}",
    ]


def test_nothing_written_is_said(run_course: Run, folder: Path) -> None:
    done = run_course("generate", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(f"{EXERCISE.id} is not started yet: there is nothing to generate.\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--prompt", "é"), "course: the model has never seen 'é'. Next: course generate --prompt 'Alice '\n"),
        (("--prompt", ""), "course: a prompt has at least one character. Next: course generate --prompt 'Alice '\n"),
        (
            ("--max-new-tokens", "123"),
            "course: 6 characters and 123 new ones are more than the 128 that the model knows. "
            "Next: course generate with --max-new-tokens 122\n",
        ),
        (("causal_mask",), f"course: causal_mask has no cache to write with. Next: course generate {EXERCISE.id}\n"),
    ],
)
def test_what_cannot_be_written_is_refused(run_course: Run, folder: Path, options: tuple[str, ...], says: str) -> None:
    write(folder, SOLUTION)
    done = run_course("generate", *options, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", says)
