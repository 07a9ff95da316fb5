"""Is this the same face?"""
