"""What several benchmarks need: photos, people, a server, a load."""
