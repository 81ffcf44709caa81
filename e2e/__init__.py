"""Tests that drive other people's programs: slow, heavy to install, and apart from `make test`."""
