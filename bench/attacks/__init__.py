"""The same ten attacks on four graders. Run: python -m bench.attacks"""
