"""Batches: reads entries and sends answers at the same time."""
