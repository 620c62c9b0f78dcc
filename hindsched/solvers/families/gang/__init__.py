"""Methods of ``solve`` for gang."""
