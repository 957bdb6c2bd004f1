"""`course gpt2` and `course plot --gpt2`, with a tiny GPT-2 on a hub of this machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.notebook import Magics
from tests import make
from tests.student.gpt2_files import HEADS, save_files
from tests.student.local_hub import fill_cache, serve_files
from tests.student.real import REPOSITORY, exercise_of, reference_source

FUSED, SDPA = "fused_qkv", "sdpa_equivalence"
NOWHERE = "http://127.0.0.1:9"  # the port of a service that no machine runs any more


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with the files of a tiny GPT-2."""
    return save_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def student_folder(tmp_path) -> Path:
    """Return a student's folder of the real course, in which exercises 07 and 08 are right.

    Exercise 07 was saved last.
    """
    folder = tmp_path / "mine"
    exercises = Path("exercises/multi_head_attention")
    for name in ("fingerprints", "trained"):
        (folder / exercises / name).mkdir(parents=True)
        for path in (REPOSITORY / exercises / name).glob("0[2578]_*"):
            shutil.copy(path, folder / exercises / name)
    shutil.copy(REPOSITORY / "course.yaml", folder)
    for id_ in (SDPA, "causal_mask", FUSED):
        script = exercise_of(id_).script.relative_to(REPOSITORY)
        (folder / script).write_text(reference_source(id_), encoding="utf-8")
    return folder


@pytest.fixture
def script(student_folder) -> Path:
    """Return the student's file of exercise 07."""
    return student_folder / exercise_of(FUSED).script.relative_to(REPOSITORY)


@pytest.fixture
def hub_environment(tmp_path) -> dict[str, str]:
    """Return the environment of a command whose hub has an empty cache and cannot be reached."""
    return {"HF_HOME": str(tmp_path / "hub"), "HF_ENDPOINT": NOWHERE, "COLUMNS": "100"}


@pytest.fixture
def course(student_folder, hub_environment):
    """Return a function that runs `course` in a new process."""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**hub_environment, **environment}
        return make.run(sys.executable, "-m", "manyheads", *words, cwd=student_folder, **env)

    return run


@pytest.fixture
def course_with_gpt2(course, files, tmp_path):
    """Return the same function, for a hub whose cache has GPT-2."""
    fill_cache(tmp_path / "hub", files)
    return course


def fault_of(completed: subprocess.CompletedProcess[str]) -> str:
    """Return the last sentence of a command, without the lines of the hub before it."""
    assert completed.returncode == 2
    return completed.stderr[completed.stderr.index("course: ") :]


def test_gpt2_is_downloaded_once_and_writes_the_same_with_a_right_attention(course, files):
    with serve_files(files) as address:
        downloaded = course("gpt2", "The keys", HF_ENDPOINT=address)
    assert downloaded.returncode == 0
    announcement, *lines = downloaded.stdout.splitlines()
    assert announcement == "GPT-2 is not on this machine yet: 1 MB are downloaded once."
    heading, expected, own_heading, actual, difference, next_step = lines
    assert heading == "With GPT-2's own attention:"
    assert own_heading == "With yours, of fused_qkv:"
    assert re.fullmatch(r"  The keys( \S+){30}", expected)
    assert actual == expected
    assert difference.startswith("The largest difference of the logits on the first text is ")
    assert difference.endswith(": no more than rounding.")
    assert next_step == "Next: course plot fused_qkv --gpt2"
    from_cache = course("gpt2", "The keys")
    assert from_cache.stdout.splitlines() == lines
    assert from_cache.stderr == ""


def test_a_wrong_attention_is_shown_beside_the_right_one(course_with_gpt2, script):
    make.replace(script, "math.sqrt(self.head_dim)", "math.sqrt(C)")
    completed = course_with_gpt2("gpt2")
    assert (completed.returncode, completed.stderr) == (0, "")
    _, expected, _, actual, difference, next_step = completed.stdout.splitlines()
    assert expected != actual
    assert difference.endswith(": your module computes something else.")
    assert next_step == "Next: course check fused_qkv"


def test_the_module_that_was_saved_last_is_used(course_with_gpt2, student_folder):
    later = student_folder / exercise_of(SDPA).script.relative_to(REPOSITORY)
    later.write_text(reference_source(SDPA).replace("math.sqrt(", "math.sqrt(13 * "))
    completed = course_with_gpt2("gpt2")
    assert completed.returncode == 0
    assert "With yours, of sdpa_equivalence:" in completed.stdout.splitlines()


def test_an_untouched_exercise_08_is_not_used_even_if_it_is_newer(course_with_gpt2, student_folder):
    later = exercise_of(SDPA).script
    shutil.copyfile(later, student_folder / later.relative_to(REPOSITORY))
    completed = course_with_gpt2("gpt2")
    assert completed.returncode == 0
    assert "With yours, of fused_qkv:" in completed.stdout.splitlines()


def test_a_prompt_of_one_token_shows_a_wrong_scale(course_with_gpt2, script):
    """The softmax over one token is 1 with every scale, so later tokens must count."""
    make.replace(script, "math.sqrt(self.head_dim)", "math.sqrt(C)")
    completed = course_with_gpt2("gpt2", "Alice")
    assert completed.returncode == 0
    assert completed.stdout.splitlines()[-2].endswith(": your module computes something else.")


@pytest.mark.parametrize(
    ("status", "missing_bytes", "sentence"),
    [
        pytest.param(
            404,
            0,
            "course: openai-community/gpt2 could not be downloaded: the server answers 404. Next: "
            "try it later, or ask your instructor for the files, then: course gpt2\n",
            id="a repository that is gone",
        ),
        pytest.param(
            200,
            3,
            "course: GPT-2 could not be downloaded (RemoteProtocolError: peer closed connection ",
            id="a download that breaks off",
        ),
    ],
)
def test_a_failed_download_is_one_sentence(course, files, status, missing_bytes, sentence):
    with serve_files(files, status, missing_bytes) as address:
        completed = course("gpt2", HF_ENDPOINT=address)
    assert fault_of(completed).startswith(sentence)
    assert completed.stderr.count("\n") < 20  # the hub's own lines, and no traceback


def test_a_hub_that_cannot_be_reached_is_one_sentence(course):
    completed = course("gpt2")
    assert (completed.stdout, completed.stderr) == (
        "",
        "course: GPT-2 could not be downloaded (ConnectError: [Errno 111] Connection refused). "
        "Next: check the network, then: course gpt2\n",
    )


def test_a_wrong_file_is_named_with_its_folder_in_the_cache(course, files, tmp_path):
    page = shutil.copytree(files, tmp_path / "page")
    (page / "model.safetensors").write_text("<html>")
    with serve_files(page) as address:
        fault = fault_of(course("gpt2", HF_ENDPOINT=address))
    assert "model.safetensors is not GPT-2's: SafetensorError: " in fault
    folder = tmp_path / "hub" / "hub" / "models--openai-community--gpt2"
    assert fault.endswith(f". Next: rm -r {folder}\n")
    assert folder.is_dir()


def test_a_file_that_cannot_be_read_is_not_called_wrong(course_with_gpt2, tmp_path):
    """To read /proc/self/mem from its start is an error, as with a broken disk."""
    (config,) = (tmp_path / "hub").rglob("config.json")
    config.unlink()
    config.symlink_to("/proc/self/mem")
    assert fault_of(course_with_gpt2("gpt2")) == (
        f"course: {config} cannot be read (OSError: [Errno 5] Input/output error). "
        "Next: course gpt2\n"
    )


@pytest.fixture
def disk_of_200_kib(tmp_path):
    """Mount a file system that has no room for the weights."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root mounts a small file system, and not on every machine")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_one_sentence(course, files, disk_of_200_kib):
    with serve_files(files) as address:
        completed = course("gpt2", HF_ENDPOINT=address, HF_HOME=str(disk_of_200_kib))
    assert fault_of(completed) == (
        f"course: the disk of {disk_of_200_kib}/hub is full, and GPT-2 needs 548 MB there. Next: "
        "make room there, or set HF_HOME to a folder on another disk, then: course gpt2\n"
    )


def test_a_missing_extra_is_one_sentence_with_its_installation(course, tmp_path):
    shadow = tmp_path / "shadow" / "tokenizers.py"
    shadow.parent.mkdir()
    shadow.write_text("raise ModuleNotFoundError(name='tokenizers')")
    path = f"{shadow.parent}{os.pathsep}{REPOSITORY}"
    assert fault_of(course("gpt2", PYTHONPATH=path)) == (
        "course: GPT-2 needs the package tokenizers, which this Python does not have. "
        "Next: pip install 'manyheads[gpt2]' -c constraints.txt\n"
    )


@pytest.mark.parametrize(
    ("prompt", "count"), [pytest.param("", 0, id="empty"), pytest.param("the " * 48, 48, id="long")]
)
def test_a_prompt_of_no_tokens_or_too_many_is_refused(course_with_gpt2, prompt, count):
    assert fault_of(course_with_gpt2("gpt2", prompt)) == (
        f"course: the prompt has {count} tokens; GPT-2 can continue 1 to 47. Next: course gpt2\n"
    )


def test_plot_draws_all_heads_of_a_block_of_gpt2(course_with_gpt2, student_folder):
    completed = course_with_gpt2("plot", FUSED, "--gpt2")
    assert (completed.returncode, completed.stderr) == (0, "")
    caption = completed.stdout.splitlines()[0]
    assert caption == (
        "“The keys to the cabinet were on the table”, block 3 of 3 of GPT-2: 12 heads, and the "
        "output is as expected"
    )
    page = (student_folder / "plots" / f"{FUSED}.html").read_text(encoding="utf-8")
    panels = re.findall(r'<svg [^>]*aria-label="[^"]*of GPT-2: (head \d+)".*?</svg>', page)
    assert panels == [f"head {number}" for number in range(HEADS)]
    first_panel = re.search(r"<svg .*?</svg>", page, re.DOTALL)[0]
    assert re.findall(r"<text [^>]*rotate[^>]*>(\w+)</text>", first_panel) == caption[1:42].split()


def test_plot_says_that_an_exercise_has_no_module_for_gpt2(course_with_gpt2):
    assert fault_of(course_with_gpt2("plot", "causal_mask", "--gpt2")) == (
        "course: causal_mask has no module that fits GPT-2. Next: course plot fused_qkv --gpt2\n"
    )


def test_plot_names_the_line_of_a_layer_that_does_not_fit(course_with_gpt2, script):
    text = script.read_text(encoding="utf-8").replace("self.qkv", "self.c_attn")
    script.write_text(text, encoding="utf-8")
    line = text[: text.index("self.c_attn = ")].count("\n") + 1
    completed = course_with_gpt2("plot", FUSED, "--gpt2")
    assert (
        "GPT-2's weights do not fit: your CausalSelfAttention has no qkv.weight of the shape (195, "
        f"65); it has c_attn.weight of (195, 65), which is written on line {line}."
    ) in completed.stdout


class Shell:
    """Keeps the magics that are registered with it."""

    def __init__(self) -> None:
        self.magics = {}

    def register_magic_function(self, magic, magic_kind: str, name: str) -> None:
        assert magic_kind == "line"
        self.magics[name] = magic


def test_the_magic_runs_gpt2_with_a_prompt_in_quotes(
    course_with_gpt2, student_folder, hub_environment, monkeypatch, capsys
):
    for name, value in {**hub_environment, "PYTHONPATH": str(REPOSITORY)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(student_folder / "exercises" / "multi_head_attention")
    shell = Shell()
    Magics(shell, FUSED)
    shell.magics["course"]('gpt2 "to the table"')
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "With GPT-2's own attention:"
    assert lines[1].startswith("  to the table ")
    assert lines[-1] == "Next: %course plot fused_qkv --gpt2"
