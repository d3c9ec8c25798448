"""One HTML page from a result: it needs no network, no server and no other file."""
