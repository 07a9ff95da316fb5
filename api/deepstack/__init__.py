"""The face routes of DeepStack, for its clients."""
