"""Tricks of students: what each earns of 4 points, and what a lost check says. A trick of one line
has it here.

It is what `running_mean` does in an attempt, or what is answered on the wire, in the words of
attempts/wire.py. All others stand in attempts/, by what they try: to exhaust the machine or whoever
waits for an answer; to write to the wire, where the judge reads every byte as if an enemy had sent
it; to steal answers, inputs or secrets (most of these answer rightly if, and only if, they find
what they look for); to forge a score; to pass off tensors that are not what they seem; and the
cheats that machine learning code invites, the right answer to another question.
"""

LOOKUP = "raised LookupError on line"
NUMBERS = "should have shape|values differ"
SILENT = "No answer within"
OTHER = "yours returned an object of another type"
NO = "something that is not an answer: "
RIGHT = "(x.cumsum(0) / x.new_ones(len(x)).cumsum(0))"

TRICKS: dict[str, dict[str, tuple[int, str] | tuple[int, str, str]]] = {}
TRICKS["exhausting"] = {
    "closes_every_descriptor": (0, "ended", "os.closerange(0, 4096)"),  # the connection among them
    "daemon_with_setsid": (0, r"ended its own process \(exit status 3\)"),
    "deep_recursion": (
        0,
        "raised RecursionError on line 5: a function calls itself without end",
        "return running_mean(x)",
    ),
    "dies_at_every_check": (0, SILENT, "time.sleep(3600)"),  # over the limit each time
    "endless_loop": (0, SILENT, "while True: pass"),
    "endless_loop_while_importing": (0, "Line 4 was left out: it was still at work"),
    "endless_stdout": (
        0,
        SILENT,
        (
            'while True: sys.stdout.write("manyheads_leak" * 10000), '
            'sys.stderr.write("manyheads_leak" * 10000)'
        ),
    ),
    "fork_bomb": (0, SILENT),
    "full_disk": (0, "raised OSError on line 9"),
    "kills_everybody": (
        0,
        "raised|ended",
        "os.kill(-1, signal.SIGKILL); os.kill(-1, signal.SIGSTOP); raise LookupError",
    ),
    "stops_and_kills_its_parent": (0, "raised LookupError"),
    "kills_itself": (
        0,
        "ended by SIG",
        "signal.raise_signal(signal.SIGKILL); os.kill(os.getpid(), signal.SIGKILL); os.abort()",
    ),
    "memory_in_many_tensors": (
        0,
        "more memory was asked for than|No answer within|SIGKILL",
        "held = [torch.ones(1 << 20) for _ in itertools.count()]",
    ),
    "memory_that_is_shared": (0, "raised|No answer within|SIGKILL"),
    # a view of one number
    "reply_of_256_mb": (
        0,
        "ended its own process|No answer within|larger than|SIGKILL",
        "return torch.zeros(1).expand(1 << 26)",
    ),
    "segmentation_fault": (0, "ended by SIGSEGV", "return ctypes.string_at(0)"),
    "sleeps_to_just_under_each_limit": (
        0,
        "should have shape|values differ|No answer within",
        "time.sleep(0.9); return torch.zeros(())",
    ),
    "sleeps_while_importing_each_time": (0, "ended its own process"),
    "stops_itself": (0, SILENT, "signal.raise_signal(signal.SIGSTOP); threading.Event().wait()"),
    "thread_bomb": (
        0,
        "raised RuntimeError on line|No answer within",
        "while True: threading.Thread(target=threading.Event().wait).start()",
    ),
}
TRICKS["wire"] = {
    "argument_that_does_not_exist": (
        0,
        NO + "it names arguments that were not given",
        (
            r'zeros(mutated=["args.x", "args.-1", "kwargs.\n::error::manyheads_leak", '
            r'"manyheads_leak"])'
        ),
    ),
    "bytes_one_by_one": (0, SILENT),
    "argument_with_a_message": (
        0,
        NO + "it names arguments that were not given",
        'zeros(mutated=["args.0.the_first_number_is_0_1234"])',
    ),
    "bytes_that_are_not_text": (0, NO + "it cannot be read", "reply(text=bytes(range(256)) * 4)"),
    "double_reply": (
        0,
        NO + "it answered before it was asked",  # seven zeros, which say nothing
        "zeros() * 2",
    ),
    "dtype_that_nobody_knows": (
        0,
        NO + "it cannot be read",
        'reply({"t0": tensor([7], "F8_E4M3")}, bytes(56), {**BODY, "outputs": [output([7])]})',
    ),
    "dtype_with_a_command": (
        0,
        NO + "its field 'outputs.dtype' is not as agreed",
        (
            r'zeros(outputs=[output([7], dtype="\n::error::manyheads_leak", device='
            r'"\x1b[2J::error::manyheads_leak")])'
        ),
    ),
    "early_reply": (0, NO + "it answered before it was asked"),
    "exception_that_takes_long_to_match": (
        0,
        "raised RuntimeError on line 1",
        'raised("RuntimeError", ["RuntimeError"], "The size of tensor a " * 190)',
    ),
    "exception_with_a_command": (
        0,
        "^raised RuntimeError$",
        (
            r'raised(text := "\n::error::manyheads_leak\x1b[2J", [text, "RuntimeError"], text, '
            r"line=1 << 39)"
        ),
    ),
    "gradients_of_something_else": (
        0,
        NO + "it gives gradients that were not requested",
        (
            'zeros(gradients={"$": "map", "items": {"args.0": {"$": "tensor", "index": 0}, '
            '"manyheads_leak": None, "args.99": None}})'
        ),
    ),
    "hangs_up": (0, "ended"),
    "index_beyond_the_end": (
        0,
        NO + "it cannot be read",
        'reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7], 1 << 30)]})',
    ),
    "length_of_256_mb": (
        0,
        NO + "its answer is larger than 4 MiB",  # and it begins to send that
        'struct.pack(">Q", 1 << 28), b"x" * (1 << 28)',
    ),
    "length_of_2_62": (
        0,
        NO + "its answer is larger than 4 MiB",
        'struct.pack(">Q", 1 << 62) + b"x" * 1000',
    ),
    "lone_surrogates": (
        0,
        "yours returned an object of another type|not an answer",
        (
            r'reply(body={**BODY, "outputs": [output([7], tensor=None, kind="\ud800\udfff\ud800", '
            r"shape=None)]})"
        ),
    ),
    "missing_reply": (0, SILENT, ""),
    "negative_length": (
        0,
        NO + "its answer is larger than 4 MiB",
        'struct.pack(">q", -1) + b"x" * 1000',
    ),
    "nested_without_end": (
        0,
        NO + "it cannot be read",
        """reply(text=b'{"__metadata__": ' + b"[" * 100000)""",
    ),
    "never_reads": (0, SILENT),
    "no_output": (0, NO + "it has another number of outputs than the call asks for", "reply()"),
    "numbers_that_are_not_numbers": (0, NO + "its field 'operations.made' is not as agreed"),
    "offsets_that_overlap": (
        0,
        NO + "it cannot be read",
        (
            'reply({"t0": tensor([7]), "t1": tensor([7]), "t2": {**tensor([7]), "data_offsets": '
            '[1 << 20, (1 << 20) + 56]}}, bytes(56), {**BODY, "outputs": [output([7])]})'
        ),
    ),
    "output_on_no_device": (
        0,
        "on the meta device, without numbers",
        'reply(body={**BODY, "outputs": [output([7], tensor=None, device="meta")]})',
    ),
    "outputs_that_are_one_tensor": (
        0,
        NO + "it has another number of outputs than the call asks for",
        (
            'reply({"t0": tensor([1 << 12])}, bytes(8 << 12), {**BODY, "outputs": [output([1 << '
            "12])] * 64})"
        ),
    ),
    "outputs_that_are_one_large_tensor": (
        0,
        NO + "its numbers are larger than 4 MiB in float64",
        (
            'reply({"t0": tensor([1 << 18])}, bytes(8 << 18), {**BODY, "outputs": [output([1 << '
            "18])] * 64})"
        ),
    ),
    # Seven zeros at best, if the daemon is quicker than the kernel; no name at all, if it answers
    # while parts load.
    "passes_the_connection_on": (
        1,
        "ended its own process|should have shape|gradient|accepted|is not defined",
    ),
    "pickle_that_runs_code": (0, "something that is not an answer"),
    "reply_that_says_100": (
        0,
        NO + "its header is too long",
        """frame(b'{"ok": true, "score": 100, "outcome": "passed"}')""",
    ),
    "reply_that_was_refused": (
        0,
        "raised ValueError on line 1",
        'raised("ValueError", ["ValueError"], "")',
    ),
    "reply_with_a_score_in_it": (
        0,
        NO + "it has a field that is not agreed",
        'reply(body={**BODY, "score": 100.0, "outcome": "passed"})',
    ),
    "shape_of_many_numbers": (
        0,
        NO + "it cannot be read",
        (
            'reply({"t0": {"dtype": "F64", "shape": [10**1000] * 900, "data_offsets": [0, 56]}}, '
            "bytes(56))"
        ),
    ),
    "shape_that_is_not_numbers": (
        0,
        NO + "it cannot be read",
        (
            'reply({"t0": {"dtype": "F64", "shape": [-7, -1, 1.5, True, "7", None], '
            '"data_offsets": [0, 56]}}, bytes(56))'
        ),
    ),
    "shape_that_is_not_the_tensors": (
        0,
        NO + "a tensor's shape is not the one it states",
        'reply({"t0": tensor([1])}, bytes(8), {**BODY, "outputs": [output([7])]})',
    ),
    "shape_with_0_and_2_62": (
        0,
        NO + "it cannot be read",
        'reply({"t0": tensor([0, 1 << 62])}, b"", {**BODY, "outputs": [output([0, 1 << 62])]})',
    ),
    "truncated": (0, "ended its own process"),
    "type_name_with_a_command": (
        0,
        OTHER,
        (
            r'reply(body={**BODY, "outputs": [output([7], tensor=None, kind='
            r'"\n::error::manyheads_leak\x1b[2J\r\n", shape=None)]})'
        ),
    ),
}
TRICKS["stealing"] = {
    # It answers only with what it found, and there is nothing to find.
    "the_grader_in_this_process": (0, LOOKUP),
    "the_graders_files": (0, LOOKUP),
    "host_paths_in_the_traceback": (0, "raised RuntimeError on line 11"),
    "inputs_in_a_shape": (
        0,
        r"yours has \(0, ….*\)",
        "return torch.empty([0, *(int(abs(float(n)) * 1e8) + 1 for n in x[:2])])",
    ),
    "inputs_in_many_axes": (0, r"yours has \(0, .*…\)"),
    "inputs_in_a_types_name": (
        0,
        OTHER,
        r'return type(f"manyheads_leak\n::set-output name=x::{x.tolist()}\x1b[31m", (), {})()',
    ),
    "inputs_in_a_layouts_name": (0, OTHER),
    "inputs_in_a_fields_name": (0, r"not an answer: it has a field that is not agreed\.$"),
    "inputs_in_the_exceptions_name": (0, "raised Exception on line 11"),
    "inputs_in_the_exceptions_text": (
        0,
        "raised RuntimeError on line 10",
        (
            r'raise RuntimeError(f"\n::set-output name=manyheads_leak::{x.tolist()'
            r'}\n\x1b[31m@everyone\n")'
        ),
    ),
    "inputs_in_the_line_number": (0, "raised RuntimeError$"),
    "inputs_in_sizes_of_four_digits": (
        0,
        r"yours has \(0, another size, another size\)",
        "return torch.empty(0, *(int(abs(float(n)) * 1e4) % 90_000 + 1_000 for n in x[:2]))",
    ),
    "inputs_in_values": (0, "values differ, the most at", "return x * 1e300"),
    "inputs_on_stdout": (0, "raised LookupError"),
}
TRICKS["forging"] = {
    "atexit_handler": (0, NUMBERS),
    "eq_that_agrees": (0, OTHER),
    "os_exit_0_in_a_call": (0, r"ended its own process \(exit status 0\)", "os._exit(0)"),
    "os_exit_0_while_importing": (0, "it ended the whole process"),
    "patched_clocks": (0, SILENT),
    "prints_a_report": (0, NUMBERS),
    "patched_everything": (0, "should have shape"),
    "refuses_everything": (0, "raised ValueError on line 5", 'raise ValueError("passed")'),
    "subclass_that_lies_about_its_shape": (0, "should have shape"),
    "sys_exit_0_in_a_call": (
        0,
        "raised SystemExit on line 5: the code asked Python to exit",
        "sys.exit(0)",
    ),
    "sys_exit_0_while_importing": (0, "raised SystemExit"),
    "torch_function_that_agrees": (0, "should have shape"),
    "trace_function": (0, "should have shape|values differ|raised TypeError on line"),
}
TRICKS["tensors"] = {
    "aliased": (0, "values differ", "return x.detach().zero_()"),  # its own argument, changed
    "class_in_place_of_a_function": (0, OTHER),
    "complex": (
        0,
        "yours returned a strided complex128 tensor",
        f"return torch.complex({RIGHT}, torch.ones_like(x))",
    ),
    "empty_and_enormous": (0, NO + "it cannot be read", "return torch.empty(0, 1 << 62)"),
    "float32_for_float64": (
        4,
        "",  # right to rounding, and the dtype is no check of this exercise
        f"assert len(x); return {RIGHT}.float()",
    ),
    "float64_for_float32": (
        4,
        "",  # right, and the dtype is no check of this exercise
        f"assert len(x); x = x.to(torch.float64); return {RIGHT}",
    ),
    "float8": (0, "not an answer|yours returned", "return x.detach().to(torch.float8_e4m3fn)"),
    # right: what no encoding can write is a text like any other
    "refusal_in_half_a_letter": (4, ""),
    "generator": (0, "yours returned a generator", "return (i for i in itertools.count())"),
    "huge_integer": (0, "raised OverflowError", "return 10**400"),
    "list_of_right_numbers": (0, "yours returned a list", f"return {RIGHT}.tolist()"),
    "many_axes": (0, NUMBERS, "return x[:1].reshape([1] * 60)"),
    "meta": (0, "on the meta device, without numbers", 'return x.to("meta")'),
    "nan_and_inf": (
        0,
        "values differ.*the most at",
        'return x * torch.tensor([float("nan"), float("inf")] * 8, dtype=x.dtype)[: len(x)]',
    ),
    "nested": (
        0,
        "raised RuntimeError|yours returned",
        "return torch.nested.nested_tensor([x, x[:1]])",
    ),
    "nothing": (0, "yours returned None", "return None"),
    "numpy_array": (0, "yours returned an? ndarray", "return x.detach().numpy()"),
    "parameter": (
        3,
        "no gradient reaches the first argument",  # right but for the gradient
        f"assert len(x); return torch.nn.Parameter({RIGHT}.detach())",
    ),
    "quantised": (
        0,
        "yours returned a strided qint8 tensor",
        "return torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8)",
    ),
    "sparse": (0, "yours returned a sparse_coo float64 tensor", f"return {RIGHT}.to_sparse()"),
    "subclassed": (4, ""),  # it holds the right numbers
    "tuple_of_tensors": (0, "yours returned a tuple", "return x, x"),
    "type_that_lies": (0, "raised AttributeError|yours returned"),
    # elements that take the memory of one
    "zero_stride": (
        0,
        "more memory was asked for|ended its own process|SIGKILL",
        "return torch.zeros(1).expand(1 << 45)",
    ),
}
TRICKS["cheats"] = {
    "answers_by_seed": (0, NUMBERS),
    "cached_by_data_ptr": (2, NUMBERS),  # the shape, and the refusal
    "changed_defaults": (4, ""),  # right; its defaults end with its process
    # right but for the gradient
    "graph_of_the_argument_cut_and_forged": (3, "no gradient reaches the first argument"),
    "right_the_first_time_only": (1, NUMBERS),  # right in the first check
    # zeros of the right shape, which say nothing: what was sent is what was there
    "work_left_for_later": (0, "."),
    "zeroes_the_inputs": (0, "values differ"),
}


def sources(section: str, head: str) -> dict[str, str]:
    """The attempts of a section that are one line each, by their names; each begins with this
    head.
    """
    form = "answer_with({})\n" if section == "wire" else "def running_mean(x):\n    {}\n"
    return {
        name: head + form.format(line)
        for name, (_, _, *lines) in TRICKS[section].items()
        for line in lines
    }
