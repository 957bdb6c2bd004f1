"""Make exercises/ from solutions/.

The files are stubs, notebooks, figures, fault dictionaries, and the attention of small models that
the references train. Every release makes the texts anew; the same sources give the same bytes. A
fault dictionary contains a key for its sources (`recording_file.key_of`). If the key no longer
fits, the exercise is recorded again. `remembered_steps` has the results of the programs that have
not changed: with one changed mutant this takes seconds, without any result a minute. If only words
about misconceptions differ, no program runs.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from ..box.worker.training import STEPS, Trainer
from ..checks.runner import namespace_of
from ..course import Course, CourseError, Exercise, load_course
from ..course.course_yaml_schema import Trainable
from ..diagnosis.bank import load_bank
from ..diagnosis.fault_dictionary import FaultDictionary
from ..diagnosis.recording_file import current, with_words
from ..files import CourseFault, write_whole
from ..judge.judge_process import end_with_parent
from ..judge.run_hidden_checks import Catalogue
from ..student.loaded_attempt import AttemptStopped
from ..student.train_model import (
    SENTENCE,
    TrainedBlock,
    TrainingRun,
    attention_of,
    read_text,
    save_blocks,
)
from ..submission import Source
from .choose_recorded_calls import right_answers
from .make_stub import stub_notebook, stub_of
from .record_fault_dictionary import recorded_file, shares_of, words_of
from .remembered_steps import RememberedSteps, read_steps, steps_file, write_steps

Files = Mapping[Path, bytes]
# takes the number of exercises, and opens a context with a function to call after each
Shown = Callable[[int], AbstractContextManager[Callable[[], None]]]
# Objects between two searches for garbage. With Python's default these searches take a sixth of the
# time, and find little, because most objects stay in use.
GARBAGE = 500_000
LOST = "a process of the release ended before it was done. Next: course release"


def _show_nothing(_: int) -> AbstractContextManager[Callable[[], None]]:
    return nullcontext(lambda: None)


def write_release(
    course: Course,
    catalogue: Catalogue,
    exercises: Sequence[Exercise] | None = None,
    jobs: int = 1,
    show_progress: Shown = _show_nothing,
) -> dict[Path, bool]:
    """Write exercises/, and remove files that no longer belong there.

    The texts of all exercises are made, and the banks of stale exercises are loaded, before
    anything is written. Then the texts of the exercises that are not stale are written, and the
    files of each stale exercise once it is recorded. A file with the right content is not touched.

    Args:
        course: The course.
        catalogue: Its checks and references.
        exercises: Write only the files of these exercises, and remove nothing. None for all.
        jobs: The number of processes that record.
        show_progress: Returns a context manager for the number of stale exercises. Its value is a
            function to call after every exercise.

    Returns:
        For each file that belongs to the exercises, whether it was written.

    Raises:
        CourseFault: A source is faulty, or a process ended.
    """
    selected = course.exercises if exercises is None else exercises
    # All texts are made before anything is written.
    texts = {exercise.id: texts_of(catalogue, exercise) for exercise in selected}
    stale = [exercise for exercise in selected if not is_current(exercise)]
    for exercise in stale:
        _check_bank(catalogue, exercise)
    written = {
        path: False
        for exercise in selected
        for path in (*texts[exercise.id], *recorded_files(exercise))
    }

    def write(files: Files) -> None:
        written.update((path, write_changed(path, content)) for path, content in files.items())

    for exercise in selected:
        if exercise not in stale:
            write(texts[exercise.id])
    with show_progress(len(stale)) as one_more:
        for exercise, computed in _record_all(course, catalogue, stale, jobs):
            write({**texts[exercise.id], **computed})
            one_more()
    for stray in stray_files(course, [*written]) if exercises is None else ():
        stray.unlink()
    return written


def is_current(exercise: Exercise) -> bool:
    """Return whether all computed files exist, and fit the sources and texts of today.

    False if the bank cannot be loaded.
    """
    recording = _reusable_recording(exercise)
    if recording is None:
        return False
    try:
        return recording.words == words_of(load_bank(exercise))
    except CourseFault:  # recording the exercise reports the fault of its bank
        return False


def _reusable_recording(exercise: Exercise) -> FaultDictionary | None:
    """Return the fault dictionary if it fits the sources, though perhaps not their words."""
    recording = current(exercise)
    if recording is None or not all(path.exists() for path in recorded_files(exercise)):
        return None
    stub = Source("", stub_of(exercise))
    return recording if recording.stub == stub.code_digest else None


def texts_of(catalogue: Catalogue, exercise: Exercise) -> Files:
    """Return the stub, the notebook and the figures of an exercise by their paths.

    Nothing is written. Raises CourseFault.
    """
    stub = stub_of(exercise)
    notebook = stub_notebook(stub, exercise.id, catalogue.checks(exercise))
    sources = [source.read_bytes() for source in exercise.figure_sources]
    figures = dict(zip(exercise.figures, sources, strict=True))
    return {exercise.script: stub.encode(), exercise.notebook: notebook.encode(), **figures}


def stray_files(course: Course, files: Sequence[Path]) -> list[Path]:
    """Return the files in exercises/ that have no source.

    Files of an nbgrader assignment whose source is in source/ are no strays.

    Args:
        course: The course.
        files: The files that are made from solutions/.
    """
    expected_files, root = set(files), course.root / "exercises"
    ours = {assignment.id for assignment in course.assignments}
    other_assignments = {
        path.name for path in (course.root / "source").glob("*") if path.is_dir()
    } - ours
    candidates = (p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return [
        path
        for path in candidates
        if path not in expected_files and path.relative_to(root).parts[0] not in other_assignments
    ]


def recorded_files(exercise: Exercise) -> tuple[Path, ...]:
    """Return the paths of an exercise's computed files: the dictionary and a trained model."""
    if exercise.train is None:
        return (exercise.fingerprints,)
    return (exercise.fingerprints, exercise.trained)


def _check_bank(catalogue: Catalogue, exercise: Exercise) -> None:
    """Raise CourseError for a faulty bank, or for a faulty reference, which the bank edits."""
    try:
        bank = load_bank(exercise)
    # A broken reference is the fault to report, rather than edits that no longer fit it.
    except CourseError:
        right_answers(catalogue, exercise)
        raise
    if not bank.mutants:
        problem = f"{exercise.misconceptions} lists no mutant, so no mistake can be named"
        raise CourseFault(
            f"{problem}. Next: write one in MUTANTS, then course release {exercise.id}"
        )


def record(catalogue: Catalogue, exercise: Exercise, steps: RememberedSteps | None = None) -> Files:
    """Return the computed files of an exercise by their paths. Nothing is written.

    A model is trained, in some twenty seconds, only if its file does not exist yet.

    Args:
        catalogue: The checks and references of the course.
        exercise: The exercise.
        steps: Known results, which are not computed again. New ones are added. None if nothing is
            known.
    """
    steps = steps or RememberedSteps(exercise)
    computed = {exercise.fingerprints: recorded_file(catalogue, exercise, steps)}
    if exercise.train is not None and not exercise.trained.exists():
        computed[exercise.trained] = trained_blocks(exercise, exercise.train)
    return computed


def trained_blocks(exercise: Exercise, trainable: Trainable, steps: int = STEPS) -> bytes:
    """Train a model with the reference, and return the attention of each block to SENTENCE.

    `save_blocks` makes the bytes, and `course plot` shows them. Training takes some twenty seconds.

    Args:
        exercise: The exercise. Its solution runs in this process.
        trainable: Its module to train.
        steps: The number of training steps.

    Raises:
        CourseError: The reference does not train.
    """
    trainer, namespace = Trainer(), namespace_of(exercise.solution)
    run = TrainingRun(
        lambda message: trainer.answer(namespace, message, "the reference"), text=read_text()
    )
    try:
        run.build(attention_of(trainable))
        for step in range(1, steps + 1):
            run.step(step)
    except AttemptStopped as stopped:
        problem = f"the reference of {exercise.id} does not train: {stopped}"
        raise CourseError(f"{problem} Next: mend it, or `train` in course.yaml") from None
    captured = dict[nn.Module, TrainedBlock]()

    def capture(module: nn.Module, args: tuple[Tensor], output: Tensor) -> None:
        captured[module] = TrainedBlock(args[0], output, dict(module.named_parameters()))

    with torch.no_grad():
        for parameter in trainer.model.parameters():  # rounded as they are saved
            parameter.copy_(parameter.half())
        hooks = [
            block.get_submodule("attention").register_forward_hook(capture)
            for block in trainer.model.blocks
        ]
        trainer.model.eval()(run.numbers(SENTENCE).long()[None])
    for hook in hooks:  # `shares_of` calls the modules again
        hook.remove()
    return save_blocks(
        [
            replace(block, shares=shares_of(module, block.module_input, trainable.shown_with))
            for module, block in captured.items()
        ]
    )


def _record_all(
    course: Course, catalogue: Catalogue, exercises: Sequence[Exercise], jobs: int
) -> Iterator[tuple[Exercise, Files]]:
    """Yield each exercise with its computed files, as soon as these are recorded.

    An exercise in which only words differ comes first, and no program runs for it. With several
    jobs and several other exercises, new processes record them, and begin with the exercise that
    has the most mutants. Otherwise this process records them, in the given order. An exception in
    one process ends the others at once, and so does Ctrl-C. Raises CourseFault if a new process
    ends before it is done.
    """
    other_code = list[Exercise]()
    for exercise in exercises:
        if _reusable_recording(exercise) is None:
            other_code.append(exercise)
        else:
            recorded = exercise.fingerprints.read_bytes()
            words = words_of(load_bank(exercise))
            yield exercise, {exercise.fingerprints: with_words(recorded, words)}
    jobs = min(jobs, len(other_code))
    if jobs <= 1:
        yield from (
            (exercise, _record_and_remember(catalogue, exercise)) for exercise in other_code
        )
        return
    longest_first = sorted(other_code, key=lambda exercise: -len(load_bank(exercise).mutants))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_start) as pool:
        at_work = {
            pool.submit(_record_there, course.root, exercise.id): exercise
            for exercise in longest_first
        }
        try:
            for future in as_completed(at_work):
                yield at_work[future], future.result()
        except BrokenProcessPool:
            raise CourseFault(LOST) from None
        finally:  # after an exception they are still busy; killing them loses nothing
            for child in multiprocessing.active_children():
                child.kill()


def _start() -> None:
    end_with_parent()
    gc.set_threshold(GARBAGE)
    # Ctrl-C reaches the whole process group; only the caller should react
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# The first exercise makes the catalogue, not `_start`: an exception then reaches the caller.
_catalogue = cache(Catalogue)


def _record_there(root: Path, id_: str) -> Files:
    course = load_course(root)
    exercise = next(exercise for exercise in course.exercises if exercise.id == id_)
    return _record_and_remember(_catalogue(course), exercise)


def _record_and_remember(catalogue: Catalogue, exercise: Exercise) -> Files:
    """Record an exercise with the results of the last release, and remember those of this one."""
    path = steps_file(exercise)
    steps = read_steps(path, exercise)
    files = record(catalogue, exercise, steps)
    write_steps(path, steps)
    return files


def write_changed(path: Path, content: bytes) -> bool:
    """Write a file if it is missing or has other content. Return whether it was written."""
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True
