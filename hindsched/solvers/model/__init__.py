"""A family's declarative programs as objects that a user holds, changes and solves."""
