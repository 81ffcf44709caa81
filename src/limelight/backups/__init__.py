"""Creates and restores backups of a data folder, while a server uses it or not."""
