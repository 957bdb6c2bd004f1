"""Fault diagnosis with a fault dictionary: name the misconceptions that explain an attempt.

Theory of operation
-------------------
Input: the fault dictionary of an exercise, which `course release` records, and the replies of an
attempt to its public calls. Output: a `bank.Diagnosis`: misconceptions, the most likely first, each
with the alternatives that the replies cannot tell apart from it. `course check` and `course grade`
use the same input and the same function, `diagnose.diagnose`.

The *fault dictionary* (`fault_dictionary.FaultDictionary`) has the replies of the reference and of
mutants to each call. A mutant is a wrong attempt with a known misconception; all mutants of an
exercise are its bank (`bank.Bank`). For some calls, the dictionary also has the replies of pairs of
mutants, and of parametric mutants, which have a free number (`bank.Sweep`). A reply is stored as a
fingerprint: its kind, its shapes and a few random projections of each tensor
(`fingerprint.ReplyFingerprint`). That is enough to recognise a reply, and it reveals no code.

The *response* (`fault_dictionary.Response`) is the attempt's side: its replies to the same calls.
Calls that reach a function which is not written are set apart. Calls whose reply differs from the
reference's are the *syndrome*.

A *rule* is a function `rule(response) -> list[Candidate]`. A *candidate* is a misconception with
the basis on which it is named. It is *evidence* if calls show it: direct evidence needs a single
call, such as an exception that only this misconception raises; weak evidence needs several. It is
an *explanation* if mutants give the replies of the syndrome.

`diagnose` applies the list `diagnose.RULES` in its order. Each rule sees the response with the
candidates so far, and no candidate is changed afterwards. There are four kinds of rules:

1. Direct evidence, always. Later rules may leave out the calls that show it.
2. Explanations, under conditions that are less strict each time: mutants, a number, a pair of
   mutants; then nearly all calls, or single functions. If one finds an explanation, the
   others are skipped. Only a guard that refuses allowed inputs sets an explanation aside: the code
   behind it did not run.
3. If something explains the syndrome: evidence of a second mistake that no explanation contains.
4. If nothing does: weak evidence, such as calls that fail with the same symptoms (a pass/fail
   dictionary), and violated oracles.

In the end one function puts the candidates in order. Evidence that cannot be the cause of the wrong
values is listed apart.

Example: an attempt at `weight_split` does not divide its scores by √head_dim, and accepts more
tokens than its context. 54 calls are public, and 40 of its replies are in the syndrome. In one of
these calls the attempt must refuse the input. The rule `answers` sees that it does not; all mutants
that accept this input have the misconception `context_unchecked`, so that is direct evidence. No
single one of 369 mutants explains all 40 calls. The rule `mutants` also looks at the 39 calls
without direct evidence. A mutant of `scale_missing` gives these replies, and is right in all other
calls. It is an explanation, so no later rule looks for one. The diagnosis is `scale_missing`, then
`context_unchecked`.

Sources
-------
Fault dictionaries: Abramovici, Breuer and Friedman, Digital Systems Testing and Testable Design,
1990; Pomeranz and Reddy, 1992, for full-response and pass/fail dictionaries. Mutants: DeMillo,
Lipton and Sayward, 1978; Jia and Harman, 2011. Metamorphic relations: Chen et al., 1998.
"""

from .bank import Bank, BuiltMutant, MisconceptionText, load_bank

__all__ = ["Bank", "BuiltMutant", "MisconceptionText", "load_bank"]
