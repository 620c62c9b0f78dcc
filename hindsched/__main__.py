"""``python -m hindsched`` is the ``hindsched`` command."""

from hindsched.cli import main

if __name__ == "__main__":
    main()
