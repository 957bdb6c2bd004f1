"""Stealing answers, inputs or secrets. Most of these answer rightly if, and only if, they find what they look for."""

from pathlib import Path

import pytest

# trick: (points of 4, what a lost check says, why that many)
EARNS = {
    "address_of_the_host": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "command_line_of_process_1": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "dns": (0, r"raised LookupError on line", "it answers only with what it found, and there is nothing to find"),
    "environment_tokens": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "finds_the_course_by_name": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "frames_of_other_threads": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "freed_memory": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "gc_objects": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "inspect_stack": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "more_descriptors": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "mounts_and_namespaces": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "network": (0, r"raised LookupError on line", "it answers only with what it found, and there is nothing to find"),
    "own_memory": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "notes_in_the_page_cache": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "hints_and_signals_by_descriptor": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "parents_memory": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "process_vm_readv": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "pycache": (0, r"raised LookupError on line", "it answers only with what it found, and there is nothing to find"),
    "reads_every_file": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "seccomp_holes": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "sys_modules": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "writes_everywhere": (0, r"raised LookupError on line",
        "it answers only with what it found, and there is nothing to find"),
    "host_paths_in_the_traceback": (0, r"raised RuntimeError on line 8", "only the line in its own file is shown"),
    "inputs_in_a_shape": (0, r"yours has \(0, ….*\)", "no numbers; sizes that no check asks for are not spelt out"),
    "inputs_in_many_axes": (0, r"yours has \(0, .*…\)", "no numbers; axes that no check asks for are not spelt out"),
    "inputs_in_a_types_name": (0, r"yours returned an object of another type",
        "not a tensor, and its name is not shown"),
    "inputs_in_a_layouts_name": (0, r"yours returned an object of another type", "only torch's own layouts are named"),
    "inputs_in_a_fields_name": (0, r"not an answer: it has a field that is not agreed\.$",
        "no answer; of a reply's place only words of ours are told"),
    "inputs_in_the_exceptions_name": (0, r"raised Exception on line 6", "only names that Python itself has are shown"),
    "inputs_in_the_exceptions_text": (0, r"raised RuntimeError on line 5",
        "the text is matched with known ones and not shown"),
    "inputs_in_the_line_number": (0, r"raised RuntimeError$", "a line beyond the file's end is not shown"),
    "inputs_in_sizes_of_four_digits": (0, r"yours has \(0, another size, another size\)",
        "no numbers; a size that the call does not contain is not told"),
    "inputs_in_values": (0, r"values differ, the most at", "seven numbers, as the first check asks"),
    "inputs_on_stdout": (0, r"raised LookupError", "nobody reads what it prints"),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(classes):
    """The whole section, graded."""
    return classes.section("stealing+forging")


def test_every_trick_stands_in_the_table():
    assert {path.stem for path in (Path(__file__).parent / "attempts" / "stealing").glob("*.py")} == set(EARNS)


@pytest.mark.parametrize(("trick", "most", "says"), [(t, *row[:2]) for t, row in EARNS.items()], ids=EARNS)
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says)


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
