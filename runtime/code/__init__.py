"""A program as source code of another language: text from instructions, to the bits of the numpy engine."""
