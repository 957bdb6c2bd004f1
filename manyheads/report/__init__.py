"""Results as text for a terminal, Markdown, HTML pages, exports and feedback archives.

Input: results, the roster, and the titles of the course, as values. Output: text, bytes, or objects
that rich prints. Only `pages.write_pages` writes files. The steps, in order:

1. `report_content` chooses the content of the report on one attempt. `class_summary` counts a
   class. They decide what a report says.
2. `terminal`, `trace_text`, `markdown`, `pages` and `score_exports` give this content a form, and
   `feedback_archives` packs pages and Markdown for the platforms.
3. `command_name` replaces `course` in a message by the name that the reader can copy.

For example, `course report` passes a `ClassView` to `terminal.class_exercises`, and to
`pages.write_pages`, which writes two pages of the class and a page for each student.
"""
