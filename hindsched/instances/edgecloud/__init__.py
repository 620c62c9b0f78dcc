"""Instances of `edgecloud`: what is given, how it is generated, how traces are mapped."""
