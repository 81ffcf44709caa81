"""System tests: whole processes, browsers and other people's programs. `make test-system` runs them."""
