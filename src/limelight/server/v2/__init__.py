"""Web API v2: sessions and messages over REST, and one WebSocket for each who watches a session and talks to it."""
