"""Web API v2: sessions and messages over REST, and a WebSocket per client to watch a session and send commands."""
