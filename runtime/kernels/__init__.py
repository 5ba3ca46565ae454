"""Compiled passes over events, each with a twin in numpy that gives the same bits; numba is an extra.

`choice.kernels` gives a module of them, or None where numba is not installed; `jit` says how they are compiled.
"""
