"""The HTTP server in front of `runs/`. Only `app` binds concrete sources, dialects and stores."""
