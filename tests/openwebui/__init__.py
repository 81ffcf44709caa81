"""The pipe for Open WebUI, tested as the one file that users install, and the command that installs it."""
