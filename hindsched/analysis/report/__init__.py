"""The HTML report of a result store."""
