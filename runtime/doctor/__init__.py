"""Check this installation: machine, packages, compilers, engines, caches and data; torch is not needed."""
