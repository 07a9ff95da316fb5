"""Where the server listens: a port or a Unix socket, with TLS or without."""
