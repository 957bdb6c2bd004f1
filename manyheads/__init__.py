"""The engine of the course and its command, `course`.

Input: a course (course.yaml, solutions, hidden checks) and files that students hand in. Output: a
result for each submission, and reports about it.

1. `course` loads the course, and `authoring` makes the students' files from the solutions.
2. `submission` turns a download into the text of attempts.
3. `judge` runs the hidden `checks`. The student's code runs only in a process of the `box`.
4. `diagnosis` names the misconception behind a wrong attempt, and `judge` writes a `result`.
5. `report` turns results into text, pages and gradebooks, and `platforms` passes them on.
6. `student` and `notebook` run the visible checks on a student's machine. `cli` has all commands.

For example, `course grade submitted --out results` writes results/ada/multi_head_attention.json for
the submission of ada.
"""
