"""Who did what: decisions, reviews, seals, and the proof of all of them."""
