"""The declarative programs: Pyomo for integer and linear, CVXPY for convex."""
