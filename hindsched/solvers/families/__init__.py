"""What each family brings: oracle, methods, search."""
