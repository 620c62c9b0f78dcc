"""The methods of `solve` for `astraea`."""
