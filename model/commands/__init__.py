"""The commands that need no server and no torch."""
