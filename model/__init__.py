"""The path of a photo: bytes -> image -> detect -> align -> embed -> compare -> decision."""
