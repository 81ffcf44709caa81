"""The servers that are compared; each is a program."""
