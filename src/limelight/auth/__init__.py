"""Who may ask, and for whom: keys, scopes, and the file that keys are kept in."""
