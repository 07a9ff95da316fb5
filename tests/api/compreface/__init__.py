"""The routes of CompreFace."""
