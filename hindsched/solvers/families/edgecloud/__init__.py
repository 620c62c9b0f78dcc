"""The methods of `solve` for `edgecloud`."""
