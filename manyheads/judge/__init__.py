"""Grade one submission, and many: run hidden checks, make every verdict. The judge never imports
student code.
"""
