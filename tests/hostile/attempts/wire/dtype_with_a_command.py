"""Answers with a dtype and a device that are commands for a CI."""
out = output([7], dtype="\n::error::manyheads_leak", device="\x1b[2J::error::manyheads_leak")
answer_with(reply({"t0": tensor([7])}, bytes(56), {**BODY, "outputs": [out]}))
