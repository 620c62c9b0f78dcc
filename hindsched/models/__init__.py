"""The declarative programs: Pyomo for integer and linear, CVXPY for convex."""

from hindsched.quick_pyomo import import_quickly

import_quickly()
