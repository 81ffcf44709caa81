"""Authentication of HTTP requests and sockets."""
