"""Reads every call and answers none."""
answer_with()
