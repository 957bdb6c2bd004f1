"""Other people's systems: nbgrader, the pull-request workflow, Gradescope's autograder."""
