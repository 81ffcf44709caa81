"""Sources turn one framework's stream into Events, one file each."""
