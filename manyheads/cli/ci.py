"""`course ci`: the steps of the class repository's workflow, and Gradescope's autograder.

`course ci collect`, `grade` and `report` are the steps of the workflow. `course ci gradescope` runs
in Gradescope's container.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..box.level_and_device_names import Device
from .options import CourseOption, course_of

ci = typer.Typer(
    no_args_is_help=True,
    help=(
        "The steps of the workflow that grades pull requests, and Gradescope's autograder.\n\n"
        "Example: `course ci grade`, after `course ci collect`."
    ),
)

Submitted = Annotated[Path, typer.Option(help="What `course ci collect` wrote.")]


@ci.command()
def collect(
    out: Annotated[Path, typer.Option(help="A new folder.")] = Path("submitted"),
    course: CourseOption = None,
) -> None:
    """Fetch the pull request's exercise files, as data. Needs GITHUB_TOKEN, which may read the
    repository.

    Example: `course ci collect --out submitted`
    """
    from ..platforms import read_pull_request

    pull_request = read_pull_request.pull_request(os.environ)
    collected = read_pull_request.collect(
        course_of(course),
        pull_request,
        read_pull_request.api_of(os.environ, pull_request.repository),
        out,
    )
    files = sum(path.suffix != ".json" for path in out.rglob("*") if path.is_file())
    print(
        f"{files} files of commit {pull_request.head[:10]}, by {collected.student}. Next: course ci"
        f" grade --submitted {out}"
    )
    for sentence in collected.refused:
        print(f"not taken: {sentence}")


@ci.command()
def grade(
    submitted: Submitted = Path("submitted"),
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results"),
    device: Annotated[Device, typer.Option(help="Where attempts compute.")] = Device.CPU,
    course: CourseOption = None,
) -> None:
    """Grade what was collected, in the box, and set the outputs that the next jobs need.

    What an earlier push left in OUT, and has not changed since, is not graded again.

    Example: `course ci grade --submitted submitted --out results`
    """
    from ..platforms import grade_pull_request
    from ..platforms.read_pull_request import read_collected, tell
    from ..report.report_content import labels_of, out_of_all

    loaded = course_of(course)
    collected = read_collected(submitted)
    graded = grade_pull_request.grade_collected(loaded, collected, submitted, device, out)
    grade_pull_request.write_artifact(out, graded)
    why_not = grade_pull_request.why_not_on_a_gpu(
        graded.results, collected.refused, labels_of(loaded)
    )
    hygiene = "not clean" if why_not else grade_pull_request.CLEAN
    tell(os.environ, "GITHUB_OUTPUT", f"hygiene={hygiene}")
    spared = grade_pull_request.not_started(loaded, graded.started)
    summary = grade_pull_request.body(
        loaded, graded.results, None, collected.refused, spared, collected.head
    )
    tell(os.environ, "GITHUB_STEP_SUMMARY", summary)
    print(
        f"{out_of_all(graded.results)}, on {device}. Results: {out}. "
        f"{why_not or 'It may run on a GPU.'}"
    )


@ci.command()
def report(
    cpu: Annotated[Path, typer.Option(help="The results of job cpu, as they came.")] = Path(
        "results-cpu"
    ),
    gpu: Annotated[Path, typer.Option(help="The results of job gpu, as they came.")] = Path(
        "results-gpu"
    ),
    submitted: Submitted = Path("submitted"),
    course: CourseOption = None,
) -> None:
    """Write the pull request's comment, its check run and the summary. Needs GITHUB_TOKEN, which
    may write those.

    Example: `course ci report --cpu results-cpu --gpu results-gpu --submitted submitted`
    """
    from ..platforms.grade_pull_request import write_report

    print(write_report(course_of(course), os.environ, submitted, cpu, gpu))


@ci.command()
def gradescope(
    assignment: Annotated[str, typer.Option(help="The id of the assignment that is handed in.")],
    root: Annotated[Path, typer.Option(help="Gradescope's folder.")] = Path("/autograder"),
) -> None:
    """Grade ROOT/submission with the course in ROOT/source, and write ROOT/results/results.json.

    The autograder that `course release --gradescope` makes runs it.

    Example: `course ci gradescope --assignment averages`
    """
    from ..platforms.grade_in_gradescope import grade_for_gradescope
    from ..report.report_content import out_of

    result = grade_for_gradescope(root, assignment)
    print(f"{out_of(result)}, isolation: {result.isolation}")
    if result.not_graded:
        raise typer.Exit(1)
