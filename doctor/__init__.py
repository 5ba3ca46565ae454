"""What is here and whether it works: machine, packages, compilers, engines, caches and data; never torch."""
