"""Creates and restores backups of a data folder. A backup can be created while a server runs."""
