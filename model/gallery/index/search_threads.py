"""FAISS, loaded so that its threads sleep between searches."""

import os

# They would spin otherwise, on the cores that the next request needs. It is read when FAISS is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import faiss

__all__ = ["faiss"]
