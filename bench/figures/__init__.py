"""The figures of the lessons: one idea each, drawn from numbers that the references compute."""
