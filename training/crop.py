"""The crops that training works on: aligned to the template, square."""

CROP_SIDE = 112  # pixels
