"""What commands share: options, and how they print, draw and write JSON."""
