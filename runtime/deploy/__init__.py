"""What a deployment gets: a program's source code with all that is needed to build and try it."""
