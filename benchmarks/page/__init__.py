"""How fast the page is, by the browser's own clock: long sessions, fast streams, long answers."""
