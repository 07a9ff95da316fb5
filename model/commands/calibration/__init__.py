"""The commands that measure, list and choose calibrations."""
