"""How much a caller may ask for and enrol, and what counts it."""
