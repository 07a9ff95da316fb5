"""The routes of CompreFace, for its clients: its paths, keys, options, shapes and errors."""
