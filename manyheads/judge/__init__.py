"""Grade submissions: run hidden checks and decide every verdict, without importing student code.

Input: submissions, and a course with its secret. Output: a folder with one result for each.

Three kinds of processes take part. The command `course grade` reads and writes files. It starts
judges, and sends them submissions through a pipe each. A judge runs the course's own code: checks,
references and mutants. An attempt runs in a process of the judge's box, which gets packed calls
through another pipe and sends packed replies.

1. `results_folder` leaves out the exercises that are graded and unchanged.
2. `judge_process` starts judges, each with a warm box; `dask_cluster` does so on other machines.
3. `grade_submission` grades each exercise. `attempt_runner` sends the calls to the attempt.
4. `collect_checks` and `run_hidden_checks` decide the outcomes. `missing_answers_and_wrong_types`
   and `nontrivial_answers` withdraw a pass that is not earned.
5. If a check failed, `prove_line` searches for the wrong line: `parts_reached_by_calls` finds the
   parts of the text that failed calls reach, `single_edits` makes small edits of each part, and
   `edit_search` has them tried, likely ones first. After `self.d_out**0.5` → `self.head_dim**0.5`
   every check passes, so that line is proved.
6. `public_calls` names the misconceptions. `attribution` builds the result from all of this.

Example: an attempt at one exercise becomes the ExerciseResult that `Judge.grade_attempt` returns.
"""
