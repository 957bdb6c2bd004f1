"""Grade many submissions with several judge processes, all with inputs from one seed. The caller writes the results."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType

from ..errors import CourseFault
from ..submission import Submission
from .judge_process import Graded, GradePlan, SteadyJudge
from .process_ties import one_for_each

Only = Mapping[Submission, tuple[str, ...]]
EVERYTHING: Only = MappingProxyType({})
SEEDS = 1_000_000  # easily typed; nobody can compute a run's inputs from it without the course's secret


def grade_all(
    plan: GradePlan, submissions: Sequence[Submission], jobs: int, only: Only = EVERYTHING
) -> Iterator[Graded]:
    """Yield results as they come; where there are no submissions, no judge is started.

    only: ids of exercises, by submission; all of those that are not in it.

    Raises what a judge's start raises (BoxUnavailable, CourseError, GraderFault).
    """
    jobs = min(jobs, len(submissions))
    if not jobs:
        return
    judges = [SteadyJudge(plan, cpu) for cpu in one_for_each(jobs)]
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
            for done in as_completed([threads.submit(grade, submission) for submission in submissions]):
                yield done.result()
        finally:  # whatever is not done now is given up, because an attempt may still have 20 seconds
            threads.shutdown(wait=False, cancel_futures=True)
            for judge in judges:
                judge.close()


def seed_of_run(folder: Path, assignments: Iterable[str], given: int | None, *, in_part: bool) -> int:
    """Return the seed that is given; else that of the results in the folder, which the run goes on with; else a new one.

    in_part: whether what they hold of some exercises stays: then it is their seed, because a result states one. Raises
    CourseFault where they have another one than is given, or several.
    """
    seeds = Counter[int]()
    for path in (path for assignment in assignments for path in sorted(folder.glob(f"*/{assignment}.json"))):
        try:
            seeds[int(json.loads(path.read_bytes())["seed"])] += 1
        except (OSError, ValueError, TypeError, LookupError):  # it is no result
            continue
    before = seeds.most_common(1)[0][0] if seeds else None
    if in_part and before is not None and set(seeds) != {before if given is None else given}:
        raise CourseFault(
            f"what {folder} holds of the other exercises has the seed {', '.join(map(str, sorted(seeds)))}, and a result "
            "states one seed. Next: the same command without --seed and --exercise, or with another --out"
        )
    if given is not None:
        return given
    return secrets.randbelow(SEEDS) if before is None else before
