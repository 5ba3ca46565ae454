"""Recordings on disk, as event arrays in time order."""
