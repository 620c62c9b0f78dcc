"""The family ``tollbooth``: cars at booths, one module for everything that is asked of it."""
