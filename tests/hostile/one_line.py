"""Tricks of one line: what running_mean does with x, or what is answered on the wire, in the words of wire.py."""

RIGHT = "(x.cumsum(0) / x.new_ones(len(x)).cumsum(0))"
ONE_LINE: dict[str, dict[str, str]] = {}
ONE_LINE["exhausting"] = {
    "aborts": "os.abort()",
    "closes_every_descriptor": "os.closerange(0, 4096)",  # the connection among them
    "deep_recursion": "return running_mean(x)",
    "dies_at_every_check": "time.sleep(3600)",  # over the limit each time
    "endless_loop": "while True: pass",
    "memory_in_one_tensor": "return torch.ones(1 << 33, dtype=torch.float64)",  # 64 GiB
    "reply_of_256_mb": "return torch.zeros(1).expand(1 << 26)",  # a view of one number
    "reply_of_5_mb": "return torch.zeros(5 << 17, dtype=torch.float64)",
    "segmentation_fault": "return ctypes.string_at(0)",
}  # fmt: skip
ONE_LINE["wire"] = {
    "body_nested_without_end": """reply(text=json.dumps({"__metadata__": {"body": '{"a":' * 100000}}).encode())""",
    "bytes_that_are_not_text": "reply(text=bytes(range(256)) * 4)",
    "dtype_that_nobody_knows": 'reply({"t0": tensor([7], "F8_E4M3")}, bytes(56), {**BODY, "outputs": [output([7])]})',
    "empty_answer": 'frame(b"")',
    "index_beyond_the_end": 'reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7], 1 << 30)]})',
    "length_of_256_mb": 'struct.pack(">Q", 1 << 28), b"x" * (1 << 28)',  # and it begins to send that
    "length_of_2_62": 'struct.pack(">Q", 1 << 62) + b"x" * 1000',
    "missing_reply": "",
    "names_that_are_not_agreed": 'reply({"../../t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])]})',
    "negative_length": 'struct.pack(">q", -1) + b"x" * 1000',
    "nested_without_end": """reply(text=b'{"__metadata__": ' + b"[" * 100000)""",
    "no_output": "reply()",
    "output_on_no_device": 'reply(body={**BODY, "outputs": [output([7], tensor=None, device="meta")]})',
    "outputs_200000": 'reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [output([7])] * 5000})',
    "reply_that_says_100": """frame(b'{"ok": true, "score": 100, "outcome": "passed"}')""",
    "reply_to_another_question": "reply()",  # as to the import: nothing returned, nothing raised
    "reply_with_a_score_in_it": 'reply(body={**BODY, "score": 100.0, "outcome": "passed"})',
    "shape_that_is_not_the_tensors": 'reply({"t0": tensor([1])}, bytes(8), {**BODY, "outputs": [output([7])]})',
    "shape_with_0_and_2_62": 'reply({"t0": tensor([0, 1 << 62])}, b"", {**BODY, "outputs": [output([0, 1 << 62])]})',
    "tensor_that_is_cut_short": 'reply({"t0": tensor([7])}, bytes(48), {**BODY, "outputs": [output([7])]})',
}  # fmt: skip
ONE_LINE["stealing"] = {
    "inputs_in_a_shape": "return torch.empty([0, *(int(abs(float(n)) * 1e8) + 1 for n in x[:2])])",
    "inputs_in_a_types_name": r'return type(f"manyheads_leak\n::set-output name=x::{x.tolist()}\x1b[31m", (), {})()',
    "inputs_in_sizes_of_four_digits":
        "return torch.empty(0, *(int(abs(float(n)) * 1e4) % 90_000 + 1_000 for n in x[:2]))",
    "inputs_in_the_exceptions_text":
        r'raise RuntimeError(f"\n::set-output name=manyheads_leak::{x.tolist()}\n\x1b[31m@everyone\n")',
    "inputs_in_values": "return x * 1e300",
}  # fmt: skip
ONE_LINE["forging"] = {
    "os_exit_0_in_a_call": "os._exit(0)",
    "refuses_everything": 'raise ValueError("passed")',
    "sys_exit_0_in_a_call": "sys.exit(0)",
}  # fmt: skip
ONE_LINE["tensors"] = {
    "aliased": "return x.detach().zero_()",  # its own argument, changed
    "complex": f"return torch.complex({RIGHT}, torch.ones_like(x))",
    "empty_and_enormous": "return torch.empty(0, 1 << 62)",
    "float32_for_float64": f"assert len(x); return {RIGHT}.float()",
    "float64_for_float32": f"assert len(x); x = x.to(torch.float64); return {RIGHT}",
    "float8": "return x.detach().to(torch.float8_e4m3fn)",
    "generator": "return (i for i in itertools.count())",
    "huge_integer": "return 10**400",
    "list_of_right_numbers": f"return {RIGHT}.tolist()",
    "many_axes": "return x[:1].reshape([1] * 60)",
    "meta": 'return x.to("meta")',
    "nan_and_inf": 'return x * torch.tensor([float("nan"), float("inf")] * 8, dtype=x.dtype)[: len(x)]',
    "nested": "return torch.nested.nested_tensor([x, x[:1]])",
    "nothing": "return None",
    "numpy_array": "return x.detach().numpy()",
    "parameter": f"assert len(x); return torch.nn.Parameter({RIGHT}.detach())",  # cut off from its argument
    "quantised": "return torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8)",
    "sparse": f"return {RIGHT}.to_sparse()",
    "tuple_of_tensors": "return x, x",
    "zero_stride": "return torch.zeros(1).expand(1 << 45)",  # elements that take the memory of one
}  # fmt: skip


def sources(section: str, head: str) -> dict[str, str]:
    """The attempts of a section that are one line each, by their names; each begins with this head."""
    form = "answer_with({})\n" if section == "wire" else "def running_mean(x):\n    {}\n"
    return {name: head + form.format(line) for name, line in ONE_LINE.get(section, {}).items()}
