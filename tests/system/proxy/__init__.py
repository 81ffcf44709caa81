"""Limelight behind real proxies, set up by the files in `deploy/`. `make test-proxy` runs it."""
