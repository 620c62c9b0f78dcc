"""How programs reach the solvers."""

from hindsched.quick_pyomo import import_quickly

import_quickly()
