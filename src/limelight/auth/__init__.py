"""Authentication, independent of HTTP: API keys and their file, JWTs of an issuer, scopes and user ids."""
