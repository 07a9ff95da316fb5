"""Moves the subjects of a CompreFace in: out of its database, or through its REST API."""
