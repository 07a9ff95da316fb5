"""The schemas of requests and responses, one file per file of routes."""
