"""Judge processes: each is started once, with a warm box, and grades many submissions.

`grade_all` starts them as SteadyJudges, and hands each submission to the next judge that is free. A
judge gets submissions through a pipe and answers with results. If it dies, another takes its place.
All inputs of a run come from one seed.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING

from ..box.level_and_device_names import BoxUnavailable, Device
from ..course import Course, load_course
from ..files import CourseFault
from ..result import with_total
from ..submission import Submission
from .results_folder import Graded as Graded
from .results_folder import GradePlan as GradePlan

if TYPE_CHECKING:
    from .grade_submission import Judge

JUDGE = "judge"  # the name of a judge's process
# the data of one judge: seven times as much as the class of this course needs
MEMORY_MIB = 4096
CLOSE_SECONDS = 5.0  # the time in which a judge must end its box before it is killed
Only = Mapping[Submission, Collection[str]]  # the ids of the exercises to grade, by submission
LOST = "a judge process ended before it was done. Next: run the same command again"


class WorkerLost(CourseFault):
    """A judge process ended. The text ends with the command to run next."""


def grade_all(
    plan: GradePlan, submissions: Sequence[Submission], jobs: int, only: Only
) -> Iterator[Graded]:
    """Grade the submissions with `jobs` judges, and yield each result when it is there.

    Raises what a judge raises when it cannot start (BoxUnavailable, CourseError, GraderFault), and
    WorkerLost if judges die again and again. In these cases, and if the caller stops iterating, the
    other submissions are not graded.

    Args:
        plan: The options of the run.
        submissions: The submissions.
        jobs: The number of judges.
        only: The ids of the exercises to grade, by submission; all if a submission is not listed.
    """
    jobs = min(jobs, len(submissions))
    if not jobs:
        return
    # Only the first judge lists exercises without a recording: one list is enough.
    judges = [
        SteadyJudge(replace(plan, reports_unrecorded=index == 0), cpu)
        for index, cpu in enumerate(cpu_for_each_judge(jobs))
    ]
    free = SimpleQueue[SteadyJudge]()
    for judge in judges:
        free.put(judge)

    def grade(submission: Submission) -> Graded:
        judge = free.get()  # there are as many threads as judges
        try:
            return judge.grade(submission, only.get(submission, ()))
        finally:
            free.put(judge)

    with ThreadPoolExecutor(jobs) as threads:
        try:
            for future in as_completed(
                [threads.submit(grade, submission) for submission in submissions]
            ):
                yield future.result()
        # Work that is not done is given up, because an attempt may run for another 20 seconds.
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for judge in judges:
                judge.close()


class SteadyJudge:
    """A judge in another process, which ends with the caller, and is replaced if it dies.

    If it dies, its submission is tried once more in a fresh process, exercise by exercise. An
    exercise that ends such a process, too, is not graded, and its checks are skipped.
    """

    def __init__(self, plan: GradePlan, cpu: int | None = None) -> None:
        """Start the process without waiting for it.

        Args:
            plan: The options of the run.
            cpu: The only CPU that the process may use, or None for any.
        """
        self._plan, self._cpu = plan, cpu
        self._is_ready = self._is_closed = False
        # one thread may close this judge while another replaces its process
        self._changing = threading.Lock()
        self._start()

    def wait(self) -> None:
        """Wait until the judge can grade.

        Raises the exceptions of `open_judge` (BoxUnavailable, GraderFault, …), or WorkerLost if the
        process ends before.
        """
        if not self._is_ready:
            self._ask()
            self._is_ready = True

    def grade(self, submission: Submission, only: Collection[str] = ()) -> Graded:
        """Grade a submission, exercise by exercise if the process dies over it.

        Raises the exceptions of `wait` and of `Judge.grade`. Raises WorkerLost only if this judge
        is closed, or if a process dies that has no attempt to grade.

        Args:
            submission: The submission.
            only: The ids of the exercises to grade; empty for all.
        """
        try:
            return self._grade(submission, only)
        except WorkerLost:
            self._replace()
        selected_ids = only or self._plan.exercises
        gradings = []
        for id_ in (exercise.id for exercise in submission.assignment.exercises):
            if selected_ids and id_ not in selected_ids:
                continue
            try:
                gradings.append(self._grade(submission, (id_,)))
            except WorkerLost:
                self._replace()
                gradings.append(self._grade(submission, (id_,), given_up=(id_,)))
        exercises = [exercise for grading in gradings for exercise in grading.result.exercises]
        faults = tuple(fault for grading in gradings for fault in grading.faults)
        first_grading = gradings[0]
        result = with_total(first_grading.result, exercises)
        return replace(first_grading, result=result, faults=faults)

    def close(self) -> None:
        """End the process immediately, even while it grades, and start no other."""
        self._is_closed = True
        with self._changing:
            self._end()

    def _start(self) -> None:
        """Start the process, with a pipe to it."""
        context = multiprocessing.get_context("spawn")
        self._pipe, pipe_of_process = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(pipe_of_process, self._plan, self._cpu), name=JUDGE, daemon=True
        )
        with pipe_of_process:
            self._process.start()

    def _end(self) -> None:
        """End the process, by force if it has not ended after CLOSE_SECONDS."""
        self._process.terminate()
        self._process.join(CLOSE_SECONDS)
        self._process.kill()
        self._process.join()
        self._pipe.close()  # only now, because another thread may read from it

    def _replace(self) -> None:
        """Start another process in place of one that died, without waiting for it.

        Raises WorkerLost if this judge is closed.
        """
        with self._changing:
            if self._is_closed:
                raise WorkerLost(LOST)
            self._end()
            self._is_ready, self._plan = False, replace(self._plan, reports_unrecorded=False)
            self._start()

    def _grade(
        self, submission: Submission, only: Collection[str], given_up: Collection[str] = ()
    ) -> Graded:
        """Have the process grade these exercises, except those that are given up.

        Raises the exceptions of `wait` and of `Judge.grade`, and WorkerLost if the process dies.
        """
        self.wait()
        graded = self._ask(submission, tuple(only), tuple(given_up))
        assert isinstance(graded, Graded)
        return graded

    def _ask(self, *message: object) -> object:
        """Send a message, if one is given, and return the answer.

        Raises the answer if it is an exception. Raises WorkerLost if the process has ended.
        """
        try:
            if message:
                self._pipe.send(message)
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise WorkerLost(LOST) from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(pipe: Connection, plan: GradePlan, cpu: int | None) -> None:
    """Grade the submissions that come through the pipe, until it is closed.

    The first answer is None when the judge is ready, or the exception that ends its start. Then
    each message (submission, ids to grade, ids given up) has a Graded or an exception as its
    answer.

    Args:
        pipe: The connection to the caller.
        plan: The options of the run.
        cpu: The only CPU that this process may use, or None for any.
    """
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    stack = ExitStack()  # closes the box

    # This also ends a running attempt, which ends with its box.
    def terminate(number: int, frame: object) -> None:
        stack.close()
        os._exit(0)

    signal.signal(signal.SIGTERM, terminate)
    # Ctrl-C reaches the whole group, but only the caller should react
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()  # before the slow imports
    with suppress(EOFError, OSError), stack:
        try:
            judge = open_judge(plan, stack)
        except Exception as error:
            pipe.send(error)
            return
        pipe.send(None)
        gc.set_threshold(10_000, 10, 1_000_000)  # no full collection while a submission is graded
        while True:
            submission, only, given_up = pipe.recv()
            judge.faults.clear()
            try:
                result = judge.grade(submission, only, given_up)
                pipe.send(Graded(submission, result, tuple(judge.faults)))
            except Exception as error:
                pipe.send(error)
            # Banks, tables and the growing replay caches stay alive. The garbage collector would
            # visit them again and again, for an eighth of a judge's CPU time.
            gc.collect()
            gc.freeze()


def open_judge(plan: GradePlan, stack: ExitStack) -> Judge:
    """Open a box, prove its isolation, and return the judge of this process.

    The memory of this process is limited from then on. If the plan asks for it, exercises without a
    recording are listed on standard error. Raises BoxUnavailable, CourseError, GraderFault.

    Args:
        plan: The options of the run.
        stack: Closes the box when it is closed.
    """
    # While modules are imported, a garbage collection finds nothing and takes a fifth of the time.
    gc.disable()
    try:
        import torch

        from ..box import open_box
        from ..box.canary import prove
        from ..box.worker.zygote import make_meta_ready
        from .grade_submission import Judge

        if plan.device is Device.CUDA and not torch.cuda.is_available():
            problem = "this machine has no CUDA device that torch can use"
            raise BoxUnavailable(f"{problem}. Next: course grade … --device cpu")
        course = load_course(plan.course)
        limits = course.limits.for_worker(plan.device)
        box = stack.enter_context(open_box(plan.level, limits, course.root))
        prove(box, limits, course.root, course.hidden_files())
        make_meta_ready()  # references are called on the meta device
        judge = Judge(course, box, plan)
        judge.demand_points()  # here, because all grading begins here
        if plan.reports_unrecorded:
            report_unrecorded(course, plan.exercises)
        _limit_memory(course)
        return judge
    finally:
        gc.freeze()  # imported modules stay until the end
        gc.enable()


def _limit_memory(course: Course) -> None:
    """Limit the memory of this process and of the processes that it starts, except on Windows.

    Without a limit, a submitted text could make the judge use up the machine's memory. With it, an
    allocation fails, one exercise is not graded, and the run goes on. Boxes inherit the limit,
    which is above theirs.
    """
    with suppress(ImportError):  # Windows, where nobody grades
        import resource

        data_limit = (MEMORY_MIB + course.limits.memory_mib) * 1024 * 1024
        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (data_limit, hard_limit))


def report_unrecorded(course: Course, exercises: Collection[str]) -> None:
    """List on standard error the exercises without a current recording, if there are any.

    Args:
        course: The course.
        exercises: The ids of the exercises that may be listed; empty for all.
    """
    from ..diagnosis.recording_file import current

    selected = [
        exercise for exercise in course.exercises if not exercises or exercise.id in exercises
    ]
    ids = [exercise.id for exercise in selected if current(exercise) is None]
    if ids:
        problem = (
            f"no current recording of {', '.join(ids)}: points are given, and no "
            "misconception is named"
        )
        print(
            f"course: {problem}. Next: course release {' '.join(ids)}", file=sys.stderr, flush=True
        )


def end_with_parent() -> None:
    """End this process as soon as its parent has ended for any reason.

    Its box then ends, too (manyheads/box/host_processes.py). A grading judge does not read from the
    pipe that brings it work, so without this it would notice the end of the pipe only later.
    Nothing happens in a process without a parent: it is the command itself.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, name="orphan", daemon=True).start()


def cpu_for_each_judge(judge_count: int) -> Sequence[int | None]:
    """Return one CPU for each judge if there are as many CPUs as judges, otherwise None for each.

    A judge and its box alternate: one computes while the other waits. On one CPU, each finds in the
    cache the data that the other has just written, and no other CPU has to wake up. That saves a
    sixteenth of the CPU time of a correct submission. With more CPUs or fewer, the kernel places
    processes better than we do.
    """
    cpus = _cpus()
    return cpus if len(cpus) == judge_count else [None] * judge_count


def usable_cpu_count() -> int:
    """Return how many CPUs this process may use, or how many the machine has if that is unknown."""
    return len(_cpus()) or os.cpu_count() or 1


def _cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may use, or [] on any system but Linux."""
    # Only Linux has this call.
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
