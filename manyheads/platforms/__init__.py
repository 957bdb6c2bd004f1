"""Grade inside other systems: nbgrader, pull requests on GitHub, and Gradescope's autograder.

Each system is one way to grade a course:

- `nbgrader_commands` wraps nbgrader's own commands, and `nbgrader_gradebook` reads and writes its
  notebooks and its database.
- `pull_request` has the steps of a workflow: collect the files of a pull request through the API
  (`github`), grade them, and report the results there.
- `gradescope_autograder` grades the hand-in of one student in Gradescope's container.

For example, `nbgrader autograde` calls `nbgrader_commands`, which grades all submissions in the box
and enters the results into the gradebook.
"""
