"""What users would pick instead, and the limits: OpenCV, deepface, bare FAISS."""
