"""The papers' figures as experiments, one module a family."""
