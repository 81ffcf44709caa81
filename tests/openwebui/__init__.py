"""The pipe for Open WebUI, as the one file that people install; and the command that installs it."""
