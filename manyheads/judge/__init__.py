"""The judge: runs hidden checks over an attempt's answers, and computes every verdict. It never imports student code."""
