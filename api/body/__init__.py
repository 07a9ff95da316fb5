"""Reads request bodies while they stream in: JSON, and multipart forms part by part."""
