"""Backups of a data folder, and the way back. Works on files, beside a server or without one."""
