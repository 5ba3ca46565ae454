"""Damaged files by the thousand: each must be refused with an ``AxonnxError``, or do the same everywhere.

``make fuzz MINUTES=10`` runs every campaign; ``tests/fuzz/harness.py`` says how a campaign plugs in.
"""
