"""What sameface is compared with: OpenCV and deepface as peers, bare FAISS as the limit."""
