"""Inference engines that run a program. All engines give the same bits."""
