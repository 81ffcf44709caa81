"""The server: HTTP in front of `runs/`. `app` is the only place that binds concrete parts."""
