"""The parts of openapi.json that FastAPI cannot infer from routes: bodies, problems, examples and links."""
