"""The methods of `solve` for `oasis`."""
