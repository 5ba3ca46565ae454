"""Train many settings and seeds, share the work, keep the records, name the best."""
