"""The judge: runs hidden checks on an attempt and computes every verdict. It never imports student code."""
