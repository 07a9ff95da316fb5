"""What runs the application: socket and TLS, limits of connections, worker processes, stopping."""
