"""The people of all collections, as one recogniser sees them."""
