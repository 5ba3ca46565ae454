"""The data sets, one module each, and the registry that knows them by name."""
