"""Draws people who do not exist, as crops to train on without real photos."""
