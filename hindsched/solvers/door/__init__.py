"""How programs reach the solvers."""
