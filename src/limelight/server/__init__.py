"""The HTTP server, which gives clients access to `runs/`. Only `app` chooses the concrete store and dialects."""
