"""From a program to code: operators lowered to each language, and the table that the native core runs."""
