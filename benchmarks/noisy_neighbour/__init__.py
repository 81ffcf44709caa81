"""The effect of a user who reaches all limits at once on another user."""
