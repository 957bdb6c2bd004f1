"""What the workflow of the class repository runs: collect a pull request's files, grade them, report.

Its steps hold no logic of their own. Whatever a pull request holds is data here, and so is what
one job hands to another.
"""
