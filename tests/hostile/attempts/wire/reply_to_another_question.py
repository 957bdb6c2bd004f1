"""Answers a call as if it were the import: nothing returned, nothing raised."""
answer_with(reply())
