"""`make bench`: what a streamed event costs, measured side by side with two other servers. See `__main__`."""
