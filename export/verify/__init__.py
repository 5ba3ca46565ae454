"""The proof that a file is what was trained: from the run folder, through the file, to the decision on a recording."""
