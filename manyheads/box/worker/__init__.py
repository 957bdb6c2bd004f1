"""The only part of the engine that runs inside the box, next to student code.

It imports only the standard library, the packages of `contents.PACKAGES` and itself, and it knows
no exercise. Input: messages from the judge. Output: one answer to each.

1. `zygote` forks a process for each attempt, and `confine` takes its rights away (`seccomp`,
   `limits`). At level `process`, `fresh_interpreter` starts the process instead.
2. `attempt` reads messages from a pipe (`wire`), and runs the source text part by part.
3. `answer_call` makes a call: `nn_modules` builds its modules, `around_call` prepares it,
   `op_monitor` observes its operations, `result_form` says how to read its result.
4. `trace_operations`, `training` and `blocks` answer the messages of `course trace`,
   `course train` and `course gpt2`.

The judge also uses `answer_call.execute`, to put the same calls to the reference and the mutants in
its own process.

The protocol, in order, for each attempt (`messages`):

    judge → worker   Load      the attempt's source text
    worker → judge   Reply     the exceptions of the parts that did not run to their end
    judge → worker   Call      a function or module to call, with its tensors
    worker → judge   Reply     tensors, or the student's exception
    ...              ...       until the judge closes the connection

The answers to the messages after a Batch are sent together, which wakes the judge only once.

Every message is eight bytes of length, big-endian, and one safetensors file: tensors named t0, t1,
… and a JSON body in its metadata that refers to them. For example, Part(2) has no tensors and the
body {"$": "Part", "number": 2}.
"""
