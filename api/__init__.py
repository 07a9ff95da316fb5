"""Serves the model over HTTP: read, call, answer."""
