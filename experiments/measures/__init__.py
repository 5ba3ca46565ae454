"""What is measured of a case, one module each; a plan names the one it wants."""
