"""Keeping a gallery well: check, export and import, re-embed."""
