"""Reads request bodies while they stream in: JSON, and forms part by part."""
