"""Grade inside other systems: nbgrader, pull requests on GitHub, and Gradescope's autograder.

Each system is one way to grade a course:

- `wrap_nbgrader_commands` replaces the steps of nbgrader's own commands, and `nbgrader_gradebook`
  reads and writes its notebooks and its database.
- `read_pull_request` collects the files of a pull request through GitHub's API.
  `grade_pull_request` grades them, and reports the results there.
- `grade_in_gradescope` grades the hand-in of one student in Gradescope's container.

For example, `nbgrader autograde` calls `wrap_nbgrader_commands`, which grades all submissions in
the box, and `nbgrader_gradebook` enters the results into the gradebook.
"""
