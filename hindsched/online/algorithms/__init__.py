"""The papers' online algorithms and their variants, one module a family."""
