"""Redaction: removes secrets from texts, streams and events before they are stored or shown."""
