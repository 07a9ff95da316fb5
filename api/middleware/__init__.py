"""ASGI middleware: the context of a request, its deadline, its metrics."""
