"""The routes of DeepStack."""
