"""Compiled inner loops, named for what they compute, each compared with plain loops in the tests.

Arrays that belong together are fields of a named tuple. Where Python calls a kernel for every job
it hands over ``tuple(x)``: numba finds the types of a plain tuple three times faster than those of
a named one, which the kernel makes again.
"""
