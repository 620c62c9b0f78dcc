"""The audit of a log whose jobs are those of `gang`."""
