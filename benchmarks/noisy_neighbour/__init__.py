"""What one user notices of another one who is at all her limits at once."""
