"""One module an actor: its messages, then its loop."""
