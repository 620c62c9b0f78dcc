"""Pictures: each function draws on given axes and returns them."""
