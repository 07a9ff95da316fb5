"""Bundles: networks as files with their contracts, and where they come from."""
