"""The declarative programs of `astraea`."""
