"""The path of a photo: bytes -> image -> detect -> align -> embed -> compare -> decision."""

import os

# The threads of FAISS otherwise spin between searches, on the cores that the next request needs. It is read
# when FAISS is loaded, so it must be said before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
