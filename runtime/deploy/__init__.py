"""Folders for deployment: a program's source code with all files to build and test it."""
