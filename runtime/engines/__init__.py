"""What runs a program. All engines give the same bits."""
