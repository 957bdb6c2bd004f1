"""`course verify`: run pytest on the claims that a course must satisfy.

A claim is a test function of `test_files`, `test_bank` or `test_attempts`. Its docstring is the
sentence that the instructor reads. Input: a course that is released. Output: one `Line` for each
claim about an exercise, with its counts and failures.

1. `run_claims.verify_course` starts pytest in this process, with a process of pytest-xdist for each
   job.
2. `plugin` is loaded in each of these processes. It gives each claim its cases, for example one for
   each mutant, and decides which cases share a process.
3. `wrong_programs` makes the wrong attempts that some claims need. Mutants run in the process of
   the claim; attempts that are graded run in a box.
4. `run_claims.Board` collects the outcomes, and shows a line after the last case of its claim.

Example: the claim "every mutant fails a check" has 40 cases in an exercise with 40 mutants. If one
mutant passes, its line says 39 of 40, names the mutant and advises what to change.
"""
