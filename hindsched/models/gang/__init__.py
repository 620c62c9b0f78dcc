"""The declarative programs of `gang`."""
