"""Random instances with the papers' settings, one module a family."""
