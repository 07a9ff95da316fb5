"""What OpenAPI cannot read off the routes: bodies, problems and examples."""
