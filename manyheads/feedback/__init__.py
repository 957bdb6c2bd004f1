"""Feedback on its way home: as nbgrader's folder, Moodle's feedback zip and Canvas' re-upload zip."""
