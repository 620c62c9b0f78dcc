"""The toll booths on this floor."""
