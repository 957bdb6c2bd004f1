"""The line search: edits of a student's text after which every check passes.

Input: the text of an attempt, and the functions and classes of its failed calls. Output: one edit
for each proved line. An edit shows the line of a mistake, and does not name the misconception.

1. `code_parts` finds the parts of the text that these calls reach.
2. `single_edits` yields small edits of each part.
3. `search.candidates` puts the edits in order, likely ones first.
4. `search.find_lines` has them tried. `judge.prove_line` runs the edited texts in the box.

Example: after `self.d_out**0.5` → `self.head_dim**0.5` every check passes, so that line is proved.
"""
