"""The commands that a student runs: check, hint, trace, plot, ask, train, gpt2 and bench.

Input: the student's file in exercises/, and the fault dictionary of its exercise. Output: objects
that `cli` and `report` print. Only public calls are made, and nothing of the secret is needed.

1. `check_and_keep_result` finds the student's file and opens a box. The student's code runs in
   worker processes of the box, never in the process of the command. A result is kept in `.course`.
2. `check_attempt` makes the public calls, compares the replies with the fault dictionary, and
   searches for a line in which one small edit makes every visible check pass.
3. `hints` chooses the next hint for the result, and the next exercise.
4. `choose_example_calls` chooses for each function the recorded call that is easiest to understand.
   `trace` runs the attempt on this call and explains each line. `pictures` draws its output beside
   the expected one, and `ask_about_own_code` makes questions of the trace (`question`).
5. `train_model` trains a small language model with the student's module. `gpt2` puts the module
   into GPT-2 (`gpt2_model`), with the published weights (`gpt2_weights`). Both load the attempt
   with `loaded_attempt`.
6. `bench_written_out_attention` measures this machine. It runs no attempt.

`notebook`, outside this package, checks in the notebook's own kernel instead of a box.

Example: in `course check reshape_dance`, `read_own_attempt` returns an OwnAttempt, and
`Checks.result` returns its ExerciseResult.
"""
