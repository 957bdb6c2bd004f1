"""Tricks of students: what each earns, what a lost check says of it, and that nobody else is touched.

The folder attempts/ and one_line.py have the tricks by what they try: to exhaust the machine or whoever waits for an
answer; to write to the wire, where the judge reads every byte as if an enemy had sent it; to steal answers, inputs or
secrets (most of these answer rightly if, and only if, they find what they look for); to forge a score; to pass off
tensors that are not what they seem; and the cheats that machine learning code invites, the right answer to another
question.
"""

import pytest

from tests.hostile.conftest import SECTIONS, texts_of

LOOKUP = "raised LookupError on line"
NUMBERS = "should have shape|values differ"
SILENT = "No answer within"
OTHER = "yours returned an object of another type"
NO = "something that is not an answer: "

# trick: (points of 4, what a lost check says, why that many)
EARNS: dict[str, dict[str, tuple[int, str, str]]] = {}
EARNS["exhausting"] = {
    "aborts": (0, "ended by SIG", "the process is gone"),
    "closes_every_descriptor": (0, "ended", "the process cannot answer"),
    "daemon_with_setsid": (0, r"ended its own process \(exit status 3\)", "its daemon dies with it"),
    "deep_recursion": (0, "raised RecursionError on line 5: a function calls itself without end", "an exception"),
    "deep_recursion_in_native_code": (0, "ended by SIGSEGV|raised RecursionError on line",
        "the process is gone; Python 3.12 bounds such calls apart"),
    "descriptors": (0, "raised OSError on line 7", "an exception"),
    "dies_at_every_check": (0, SILENT, "nothing is answered; each death costs a fraction of the one before"),
    "endless_loop": (0, SILENT, "nothing is answered"),
    "endless_loop_while_importing": (0, "Line 4 was left out: it was still at work",
        "nothing stands above or below it"),
    "endless_stdout": (0, SILENT, "nothing is answered"),
    "file_larger_than_the_limit": (0, "raised OSError on line 7", "an exception"),
    "fork_bomb": (0, SILENT, "nothing is answered"),
    "full_dev_shm": (0, "raised OSError on line", "an exception"),
    "full_disk": (0, "raised OSError on line 9", "an exception"),
    "kills_everybody": (0, "raised|ended", "there is nobody else to kill"),
    "kills_its_parent": (0, "raised LookupError", "its parent is out of reach"),
    "kills_itself": (0, "ended by SIG", "the process is gone"),
    "loop_that_ignores_signals": (0, SILENT, "nothing is answered; SIGKILL from outside cannot be ignored"),
    "memory_in_many_tensors": (0, "more memory was asked for than|No answer within|SIGKILL",
        "it gets no more than its limit"),
    "memory_in_memfds": (0, "raised PermissionError on line 6", "no file stands nowhere"),
    "memory_in_one_tensor": (0, "more memory was asked for than an attempt may have", "an exception"),
    "memory_that_is_shared": (0, "raised|No answer within|SIGKILL", "it gets no more than its limit"),
    "reply_of_256_mb": (0, "ended its own process|No answer within|larger than|SIGKILL",
        "more than memory or a reply may hold"),
    "reply_of_5_mb": (0, "larger than 4 MiB", "more than a reply may hold"),
    "segmentation_fault": (0, "ended by SIGSEGV", "the process is gone"),
    "sleeps_to_just_under_each_limit": (0, "should have shape|values differ|No answer within",
        "a number alone, and the whole attempt has a limit too"),
    "sleeps_while_importing_each_time": (0, "ended its own process", "the process is gone in every check"),
    "stops_its_parent": (0, "raised LookupError", "its parent is out of reach, by its number and by its group"),
    "stops_itself": (0, SILENT, "nothing is answered"),
    "thread_bomb": (0, "raised RuntimeError on line|No answer within", "it gets no more threads than its limit"),
}  # fmt: skip
EARNS["wire"] = {
    "argument_that_does_not_exist": (0, NO + "it names arguments that were not given", "no such argument"),
    "body_nested_without_end": (0, NO + "it cannot be read", "not a reply"),
    "bytes_one_by_one": (0, SILENT, "one deadline for the whole answer"),
    "argument_with_a_message": (0, NO + "it names arguments that were not given", "no answer to a call"),
    "bytes_that_are_not_text": (0, NO + "it cannot be read", "not a reply"),
    "descriptors_and_urgent_bytes": (0, "ended|not an answer|No answer", "half a reply"),
    "double_reply": (1, NO + "it answered before it was asked", "seven numbers, as the first check asks"),
    "dtype_that_nobody_knows": (0, NO + "a tensor's dtype is not one that is read", "not a reply"),
    "dtype_with_a_command": (0, NO + "its field 'outputs.dtype' is not as agreed", "no dtype of torch's"),
    "duplicate_names": (0, NO + "it is not written as agreed", "not a reply"),
    "early_reply": (0, NO + "it answered before it was asked", "nothing was asked"),
    "empty_answer": (0, NO + "it is cut short", "not a reply"),
    "exception_that_takes_long_to_match": (0, "raised RuntimeError on line 1", "an exception"),
    "exception_with_a_command": (0, "^raised RuntimeError$",
        "an exception; nothing of it is shown but a name that Python has"),
    "gradients_of_something_else": (0, NO + "it gives gradients that were not requested", "no answer to a call"),
    "hangs_up": (0, "ended", "no answer"),
    "index_beyond_the_end": (0, NO + "it cannot be read", "not a reply"),
    "length_of_256_mb": (0, NO + "its answer is larger than 4 MiB", "refused before a byte of it is read"),
    "length_of_2_62": (0, NO + "its answer is larger than 4 MiB", "refused before a byte of it is read"),
    "lone_surrogates": (0, "yours returned an object of another type|not an answer", "not a tensor"),
    "missing_reply": (0, SILENT, "no answer"),
    "mutated_bytes": (1, ".", "whatever survives is seven zeros at best, as the first check asks"),
    "names_200000": (0, "not an answer: its answer is larger|No answer within|is not defined", "more than a reply may hold"),
    "names_that_are_not_agreed": (0, NO + "its tensors are not as agreed", "not a reply"),
    "negative_length": (0, NO + "its answer is larger than 4 MiB", "lengths have no sign"),
    "nested_without_end": (0, NO + "it cannot be read", "not a reply"),
    "never_reads": (0, SILENT, "no answer"),
    "no_output": (0, NO + "it has another number of outputs than the call asks for", "no answer to a call"),
    "numbers_that_are_not_numbers": (0, NO + "its field 'operations.made' is not as agreed", "not a reply"),
    "offsets_that_overlap": (0, NO + "it cannot be read", "not a reply"),
    "output_on_no_device": (0, "on the meta device, without numbers", "no numbers"),
    "outputs_200000": (0, NO + "its field 'outputs' is not as agreed", "not a reply"),
    "outputs_that_are_one_tensor": (0, NO + "it has another number of outputs than the call asks for",
        "no answer to a call"),
    "passes_the_connection_on": (1, "ended its own process|should have shape|gradient|accepted|is not defined",
        "seven zeros at best, if the daemon is quicker than the kernel; no name at all, if it answers while parts load"),
    "pickle_inside_a_reply": (0, NO + "its header is too long", "not a reply; nothing is unpickled"),
    "pickle_that_runs_code": (0, "something that is not an answer", "not a reply; nothing is unpickled"),
    "reply_that_says_100": (0, NO + "its header is too long", "not a reply"),
    "reply_that_was_refused": (0, "raised ValueError on line 1", "a refusal counts beside an answer"),
    "reply_to_another_question": (0, NO + "it has another number of outputs", "no answer to a call"),
    "reply_with_a_score_in_it": (0, NO + "it has a field that is not agreed", "not a reply"),
    "shape_of_many_numbers": (0, NO + "a tensor's shape is out of bounds", "refused before anything is multiplied"),
    "shape_that_is_not_numbers": (0, NO + "a tensor's shape is out of bounds", "not a reply"),
    "shape_that_is_not_the_tensors": (0, NO + "a tensor's shape is not the one it states", "not a reply"),
    "shape_with_0_and_2_39": (0, "not an answer|should have shape", "no numbers"),
    "shape_with_0_and_2_62": (0, NO + "a tensor's shape is out of bounds", "not a reply"),
    "sigio_to_the_judge": (0, NUMBERS, "seven numbers, as the first check asks; nobody can be signalled"),
    "tensor_that_is_cut_short": (0, NO + "it cannot be read|a tensor's size", "not a reply"),
    "truncated": (0, "ended its own process", "half a reply"),
    "type_name_with_a_command": (0, OTHER, "not a tensor"),
}  # fmt: skip
EARNS["stealing"] = {
    **dict.fromkeys(
        "address_of_the_host command_line_of_process_1 dns environment_tokens finds_the_course_by_name "
        "frames_of_other_threads freed_memory gc_objects inspect_stack more_descriptors mounts_and_namespaces network "
        "own_memory notes_in_the_page_cache hints_and_signals_by_descriptor parents_memory process_vm_readv pycache "
        "reads_every_file seccomp_holes sys_modules writes_everywhere".split(),
        (0, LOOKUP, "it answers only with what it found, and there is nothing to find"),
    ),
    "host_paths_in_the_traceback": (0, "raised RuntimeError on line 22", "only the line in its own file is shown"),
    "inputs_in_a_shape": (0, r"yours has \(0, ….*\)", "no numbers; sizes that no check asks for are not spelt out"),
    "inputs_in_many_axes": (0, r"yours has \(0, .*…\)", "no numbers; axes that no check asks for are not spelt out"),
    "inputs_in_a_types_name": (0, OTHER, "not a tensor, and its name is not shown"),
    "inputs_in_a_layouts_name": (0, OTHER, "only torch's own layouts are named"),
    "inputs_in_a_fields_name": (0, r"not an answer: it has a field that is not agreed\.$",
        "no answer; of a reply's place only words of ours are told"),
    "inputs_in_the_exceptions_name": (0, "raised Exception on line 22", "only names that Python itself has are shown"),
    "inputs_in_the_exceptions_text": (0, "raised RuntimeError on line 21",
        "the text is matched with known ones and not shown"),
    "inputs_in_the_line_number": (0, "raised RuntimeError$", "a line beyond the file's end is not shown"),
    "inputs_in_sizes_of_four_digits": (0, r"yours has \(0, another size, another size\)",
        "no numbers; a size that the call does not contain is not told"),
    "inputs_in_values": (0, "values differ, the most at", "seven numbers, as the first check asks"),
    "inputs_on_stdout": (0, "raised LookupError", "nobody reads what it prints"),
}  # fmt: skip
EARNS["forging"] = {
    "assertion_error_is_a_skip": (0, "raised BaseException on line 12",
        "a number alone, and an exception that is no refusal"),
    "atexit_handler": (0, NUMBERS, "a number alone; the handler stands in a process that nobody listens to"),
    "daemon_that_rewrites_reports": (0, NUMBERS, "a number alone; no report is in the box"),
    "eq_that_agrees": (0, OTHER, "not a tensor"),
    "exception_that_lies_about_itself": (0, "raised an exception of its own on line|raised ValueError on line",
        "an exception, whatever its class says of itself"),
    "exit_inside_the_exceptions_own_text": (0, "raised Exception on line 9", "an exception without a text"),
    "hooks_found_through_gc": (0, NUMBERS, "a number alone; pytest is in another process"),
    "os_exit_0_in_a_call": (0, r"ended its own process \(exit status 0\)", "the process is gone in every check"),
    "os_exit_0_while_importing": (0, "it ended the whole process", "defines nothing"),
    "own_torch_beside_it": (0, "raised", "its own modules are not in the box"),
    "patched_clocks": (0, SILENT, "the judge has a clock of its own"),
    "patched_comparisons": (0, NUMBERS, "a number alone; values are compared in the judge"),
    "patched_tolerances": (0, NUMBERS, "a number alone; values are compared in the judge"),
    "patched_worker": (0, "should have shape", "the part that patches is left out"),
    "prints_a_report": (0, NUMBERS, "a number alone; nobody reads what it prints"),
    "pytest_internals": (0, NUMBERS, "a number alone; pytest is in another process"),
    "refuses_everything": (0, "raised ValueError on line 5",
        "a refusal counts beside an allowed input that is answered"),
    "subclass_that_lies_about_its_shape": (0, "should have shape", "a number alone, whatever its class says"),
    "sys_exit_0_in_a_call": (0, "raised SystemExit on line 5: the code asked Python to exit",
        "an exception like any other"),
    "sys_exit_0_while_importing": (0, "raised SystemExit", "defines nothing"),
    "torch_function_that_agrees": (0, "should have shape", "a number alone, whatever its class answers"),
    "trace_function": (0, "should have shape|values differ|raised TypeError on line",
        "a number alone; it can edit nobody's locals but its own, and from Python 3.13 not even those so"),
}  # fmt: skip
EARNS["tensors"] = {
    "aliased": (0, "values differ", "zeros of the right shape"),
    "class_in_place_of_a_function": (0, OTHER, "not a tensor"),
    "complex": (0, "yours returned a strided complex128 tensor", "not numbers on a line"),
    "empty_and_enormous": (0, NO + "a tensor's shape is out of bounds", "no numbers"),
    "float32_for_float64": (4, "", "right to rounding, and the dtype is no check of this exercise"),
    "float64_for_float32": (4, "", "right, and the dtype is no check of this exercise"),
    "float8": (0, "not an answer|yours returned", "eight bits are read by no check"),
    "refusal_in_half_a_letter": (4, "", "right: what no encoding can write is a text like any other"),
    "generator": (0, "yours returned a generator", "not a tensor"),
    "huge_integer": (0, "raised OverflowError", "not a float"),
    "list_of_right_numbers": (0, "yours returned a list", "not a tensor"),
    "many_axes": (0, NUMBERS, "one number in sixty axes"),
    "meta": (0, "on the meta device, without numbers", "no numbers"),
    "nan_and_inf": (0, "values differ.*the most at", "NaN agrees with nothing; the shape is right"),
    "nested": (0, "raised RuntimeError|yours returned", "not a plain tensor"),
    "nothing": (0, "yours returned None", "not a tensor"),
    "numpy_array": (0, "yours returned an? ndarray", "not a tensor"),
    "parameter": (3, "no gradient reaches the first argument", "right but for the gradient"),
    "quantised": (0, "yours returned a strided qint8 tensor", "not plain numbers"),
    "sparse": (0, "yours returned a sparse_coo float64 tensor", "not a plain tensor"),
    "subclassed": (4, "", "it holds the right numbers"),
    "tuple_of_tensors": (0, "yours returned a tuple", "not a tensor"),
    "type_that_lies": (0, "raised AttributeError|yours returned", "not a tensor"),
    "zero_stride": (0, "more memory was asked for|ended its own process|SIGKILL", "more than memory holds"),
}  # fmt: skip
EARNS["cheats"] = {
    "answers_by_hash": (0, NUMBERS, "inputs are drawn afresh"),
    "answers_by_seed": (0, NUMBERS, "the seed is made from a secret, the student and the attempt"),
    "answers_by_shape": (0, NUMBERS, "seven numbers, as the first check asks"),
    "cached_by_data_ptr": (2, NUMBERS, "the shape, and the refusal"),
    "changed_defaults": (4, "", "right; its defaults end with its process"),
    "graph_of_the_argument_cut_and_forged": (3, "no gradient reaches the first argument", "right but for the gradient"),
    "patched_functions": (0, "values differ", "zeros of the right shape; the reference is in another process"),
    "right_the_first_time_only": (1, NUMBERS, "right in the first check"),
    "tells_grading_from_practice": (0, NUMBERS, "a number alone"),
    "work_left_for_later": (1, "values differ", "zeros of the right shape: what was sent is what was there"),
    "zeroes_the_inputs": (0, "values differ", "zeros of the right shape: the judge keeps its inputs to itself"),
}  # fmt: skip

LEAST = {"mutated_bytes": 0, "passes_the_connection_on": 0}  # where chance decides which way it fails


def marked(section, *more):
    """Attempts that exhaust the machine are a journey: most of them last until somebody ends them."""
    marks = [pytest.mark.journey] if "exhausting" in section else []
    return pytest.param(section, *more, marks=marks, id=more[0] if more else section)


of_each_section = pytest.mark.parametrize("run", [marked(section) for section in SECTIONS], indirect=True)


@pytest.fixture(scope="module")
def run(request, classes):
    """The whole section, graded."""
    return classes.section(request.param)


@pytest.mark.parametrize("kind", EARNS)
def test_every_trick_stands_in_the_table(kind):
    assert texts_of(kind).keys() == EARNS[kind].keys()


@pytest.mark.parametrize(("run", "trick", "most", "says"), [
    marked(section, trick, *row[:2])
    for section in SECTIONS
    for kind in section.split("+")
    for trick, row in EARNS[kind].items()
], indirect=["run"])  # fmt: skip
def test_earns_what_its_tensors_earn(run, trick, most, says):
    run.assert_earned(trick, most, says, least=LEAST.get(trick))


@of_each_section
def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


@of_each_section
def test_the_run_ends_by_itself_and_finds_no_fault_in_the_grader(run):
    assert run.status == 0, run.text
