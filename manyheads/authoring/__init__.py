"""From solutions to exercises: `course release`, `verify`, `init`, `new` and `doctor`.

Input: solutions/, and grader/ with the checks, the misconceptions, and right and wrong attempts.
Output: exercises/ with stubs, notebooks, figures and fault dictionaries, and from these the class
repository. All code that runs here is the instructors'; attempts that `verify` makes run in a box.

1. `make_stub` takes the solution parts out of a source, and makes the script and the notebook.
2. `choose_recorded_calls` runs the hidden checks on the reference with public inputs, and keeps the
   calls whose replies depend neither on chance nor on rounding.
3. `record_fault_dictionary` runs right attempts, wrong ones and mutants on these calls, each with
   `trusted_program`. `record_pairs_and_sweeps` adds pairs of mutants, and mistakes with a number.
4. `choose_visible_oracles` decides how `course check` judges the replies.
5. `release_exercises` does all this for each exercise whose sources have changed, in several
   processes, and writes the files. `remembered_steps` spares it the programs that are unchanged.
6. `verify` tests claims about a course, such as "every mutant fails a check".
7. `class_repository` tries the files out, and writes the class repository or Gradescope's zip.

`new_course` writes a new course or a new exercise. `isolation_levels_of_this_machine` finds out
whether attempts can be graded here.

Example: `write_release(course, catalogue)` reads each solution, such as 04_reshape_dance.py, and
writes a stub of the same name in exercises/, a notebook and a fault dictionary.
"""
