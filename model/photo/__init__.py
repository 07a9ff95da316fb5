"""One photo, step by step: decode, detect, choose, align, judge, embed, draw."""
