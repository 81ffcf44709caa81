"""The server process: uvicorn, its connections, threads, file descriptors and exit."""
