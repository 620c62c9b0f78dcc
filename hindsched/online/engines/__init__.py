"""Engines of online algorithms that several families share."""
