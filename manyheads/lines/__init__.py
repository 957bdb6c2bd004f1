"""Where an attempt goes wrong: small edits of the student's own text, one of which makes every check pass."""
