"""Methods of ``solve`` by name: generic ones in `base`, a family's own beside them."""
