"""Batches: entries in, answers out, both at the same time."""
