"""Authentication without HTTP: API keys and the file that holds them, JWTs of an issuer, scopes and user ids."""
