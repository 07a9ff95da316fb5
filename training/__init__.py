"""Trains embedding networks and exports them as bundles."""
