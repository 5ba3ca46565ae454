"""The paper's experiments, and some beyond it: ``python -m experiments NAME``.

A plan (``plans/NAME.toml``) says which cases are compared at which scale; a measure says what is done with a case and
a seed; every pair leaves one record on disk, and tables, verdicts and figures are made from records alone.
"""
