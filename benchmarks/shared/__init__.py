"""Shared by the benchmarks: LFW's pairs, generated people, a server, a load client."""
