"""Instances of `oasis`: what is given, how it is generated, how traces are mapped."""
