"""Fault diagnosis with a fault dictionary: name the misconceptions that explain an attempt.

Theory of operation
-------------------
Input: the fault dictionary of an exercise (`recording.FaultDictionary`), which `course release`
records, and the replies of an attempt to the recorded calls, each together with the reference's
reply (`observe.ObservedReply`). `course check` and `course grade` use the same input.

Output: a `diagnosis.Diagnosis`: misconceptions, the most likely first, each with the alternatives
that the replies cannot tell apart from it.

The dictionary holds the replies of the reference and of many mutants to public calls. A mutant is a
wrong attempt with a known misconception; all mutants of an exercise are its bank (`bank.Bank`).
Some replies of pairs of mutants are recorded, too, and the replies of parametric mutants, which
have a free number (`family.Sweep`). A reply is stored as a fingerprint: its kind, its shapes and a
few random projections of each tensor (`fingerprint.ReplyFingerprint`). That is enough to recognise
a reply, and it reveals no code.

Steps of `diagnose.diagnose`:

1. Compare each reply with the reference's. The calls that differ are the syndrome
   (`row.Response`). Calls that reach a function which is not written are set aside.
2. Collect direct evidence: misconceptions that a single reply, an exception, parameters or
   nondeterminism prove on their own (`proofs`, `varying_answers`).
3. Look up candidates that explain the whole syndrome: the mutants of a greedy set cover
   (`explain_row.smallest_cover`), a number on a sweep (`curves`), a recorded pair (`pairs`).
4. If there are none, look up candidates under weaker conditions: nearly all calls, exceptions of
   one kind, values without extra parameters, single functions, the calls behind a guard. The judge
   also combines two mutants and runs them.
5. If there are still none, collect weaker evidence: calls that fail with the same symptoms
   (`same_places`, a pass/fail dictionary), violated oracles (`broken_aspect`), fixed sizes.
6. Put the names in order. Evidence that cannot be the cause of the wrong values is listed apart.

Example: an attempt at `attention_scores` does not divide by √head_dim. Its replies to all calls
with scores differ from the reference's. A mutant of `scale_missing` gives the same replies, and no
mutant with another misconception does. The diagnosis is `scale_missing`.

Sources
-------
Fault dictionaries: Abramovici, Breuer and Friedman, Digital Systems Testing and Testable Design,
1990; Pomeranz and Reddy, 1992, for full-response and pass/fail dictionaries. Mutants: DeMillo,
Lipton and Sayward, 1978; Jia and Harman, 2011. Metamorphic relations: Chen et al., 1998.
"""

from .bank import Bank, MisconceptionText, Mutant, load_bank

__all__ = ["Bank", "MisconceptionText", "Mutant", "load_bank"]
