"""Hand-written passes through time and compiled kernels, with the bits of the plain formulas."""
