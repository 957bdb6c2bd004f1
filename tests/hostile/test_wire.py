"""Writing to the wire: the judge reads every byte as if an enemy had sent it."""

from pathlib import Path

import pytest

# trick: (points of 4, what a lost check says, why that many)
EARNS = {
    "argument_that_does_not_exist": (
        0,
        r"something that is not an answer: it names arguments that were not given",
        "no such argument",
    ),
    "body_nested_without_end": (0, r"something that is not an answer: it cannot be read", "not a reply"),
    "bytes_one_by_one": (0, r"No answer within", "one deadline for the whole answer"),
    "argument_with_a_message": (
        0,
        r"something that is not an answer: it names arguments that were not given",
        "no answer to a call",
    ),
    "bytes_that_are_not_text": (0, r"something that is not an answer: it cannot be read", "not a reply"),
    "descriptors_and_urgent_bytes": (0, r"ended|not an answer|No answer", "half a reply"),
    "double_reply": (
        1,
        r"something that is not an answer: it answered before it was asked",
        "seven numbers, as the first check asks",
    ),
    "dtype_that_nobody_knows": (
        0,
        r"something that is not an answer: a tensor's dtype is not one that is read",
        "not a reply",
    ),
    "dtype_with_a_command": (
        0,
        r"something that is not an answer: its field 'outputs.dtype' is not as agreed",
        "no dtype of torch's",
    ),
    "duplicate_names": (0, r"something that is not an answer: it is not written as agreed", "not a reply"),
    "early_reply": (0, r"something that is not an answer: it answered before it was asked", "nothing was asked"),
    "empty_answer": (0, r"something that is not an answer: it is cut short", "not a reply"),
    "exception_that_takes_long_to_match": (0, r"raised RuntimeError on line 1", "an exception"),
    "exception_with_a_command": (
        0,
        r"^raised RuntimeError$",
        "an exception; nothing of it is shown but a name that Python has",
    ),
    "gradients_of_something_else": (
        0,
        r"something that is not an answer: it gives gradients that were not requested",
        "no answer to a call",
    ),
    "hangs_up": (0, r"ended", "no answer"),
    "index_beyond_the_end": (0, r"something that is not an answer: it cannot be read", "not a reply"),
    "length_of_256_mb": (
        0,
        r"something that is not an answer: its answer is larger than 4 MiB",
        "refused before a byte of it is read",
    ),
    "length_of_2_62": (
        0,
        r"something that is not an answer: its answer is larger than 4 MiB",
        "refused before a byte of it is read",
    ),
    "lone_surrogates": (0, r"yours returned an object of another type|not an answer", "not a tensor"),
    "missing_reply": (0, r"No answer within", "no answer"),
    "mutated_bytes": (1, r".", "whatever survives is seven zeros at best, as the first check asks"),
    "names_200000": (0, r"not an answer: its answer is larger|No answer within", "more than a reply may hold"),
    "names_that_are_not_agreed": (0, r"something that is not an answer: its tensors are not as agreed", "not a reply"),
    "negative_length": (0, r"something that is not an answer: its answer is larger than 4 MiB", "lengths have no sign"),
    "nested_without_end": (0, r"something that is not an answer: it cannot be read", "not a reply"),
    "never_reads": (0, r"No answer within", "no answer"),
    "no_output": (
        0,
        r"something that is not an answer: it has another number of outputs than the call asks for",
        "no answer to a call",
    ),
    "numbers_that_are_not_numbers": (
        0,
        r"something that is not an answer: its field 'operations.made' is not as agreed",
        "not a reply",
    ),
    "offsets_that_overlap": (0, r"something that is not an answer: it cannot be read", "not a reply"),
    "output_on_no_device": (0, r"on the meta device, without numbers", "no numbers"),
    "outputs_200000": (0, r"something that is not an answer: its field 'outputs' is not as agreed", "not a reply"),
    "outputs_that_are_one_tensor": (
        0,
        r"something that is not an answer: it has another number of outputs than the call asks for",
        "no answer to a call",
    ),
    "passes_the_connection_on": (
        1,
        r"ended its own process|should have shape|gradient|accepted|is not defined",
        "seven zeros at best, if the daemon is quicker than the kernel; no name at all, if it answers while parts load",
    ),
    "pickle_inside_a_reply": (
        0,
        r"something that is not an answer: its header is too long",
        "not a reply; nothing is unpickled",
    ),
    "pickle_that_runs_code": (0, r"something that is not an answer", "not a reply; nothing is unpickled"),
    "reply_that_says_100": (0, r"something that is not an answer: its header is too long", "not a reply"),
    "reply_that_was_refused": (0, r"raised ValueError on line 1", "a refusal counts beside an answer"),
    "reply_to_another_question": (
        0,
        r"something that is not an answer: it has another number of outputs",
        "no answer to a call",
    ),
    "reply_with_a_score_in_it": (
        0,
        r"something that is not an answer: it has a field that is not agreed",
        "not a reply",
    ),
    "shape_of_many_numbers": (
        0,
        r"something that is not an answer: a tensor's shape is out of bounds",
        "refused before anything is multiplied",
    ),
    "shape_that_is_not_numbers": (
        0,
        r"something that is not an answer: a tensor's shape is out of bounds",
        "not a reply",
    ),
    "shape_that_is_not_the_tensors": (
        0,
        r"something that is not an answer: a tensor's shape is not the one it states",
        "not a reply",
    ),
    "shape_with_0_and_2_39": (0, r"not an answer|should have shape", "no numbers"),
    "shape_with_0_and_2_62": (0, r"something that is not an answer: a tensor's shape is out of bounds", "not a reply"),
    "sigio_to_the_judge": (
        0,
        r"should have shape|values differ",
        "seven numbers, as the first check asks; nobody can be signalled",
    ),
    "tensor_that_is_cut_short": (
        0,
        r"something that is not an answer: it cannot be read|a tensor's size",
        "not a reply",
    ),
    "truncated": (0, r"ended its own process", "half a reply"),
    "type_name_with_a_command": (0, r"yours returned an object of another type", "not a tensor"),
}

LEAST = {"mutated_bytes": 0, "passes_the_connection_on": 0}  # where chance decides which way it fails


@pytest.fixture(scope="module")
def run(classes):
    """The whole section, graded."""
    return classes.section("wire")


def test_every_trick_stands_in_the_table():
    assert {path.stem for path in (Path(__file__).parent / "attempts" / "wire").glob("*.py")} == set(EARNS)


@pytest.mark.parametrize(("trick", "most", "says"), [(t, *row[:2]) for t, row in EARNS.items()], ids=EARNS)
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says, least=LEAST.get(trick))


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
