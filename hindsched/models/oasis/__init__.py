"""The declarative programs of `oasis`."""
