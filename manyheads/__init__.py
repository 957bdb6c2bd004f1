"""The engine of the course and its command, `course`."""
