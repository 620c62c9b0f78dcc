"""Instances of gang: rigid jobs on GPUs, as clusters log them."""
