"""Generate code from a program: operators in each language, and the table that the native core runs."""
