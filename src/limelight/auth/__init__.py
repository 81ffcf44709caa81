"""Authentication without HTTP: API keys and their file, JWTs of a token issuer, scopes and user ids."""
