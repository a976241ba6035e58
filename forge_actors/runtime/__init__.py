"""The only room that knows both the actors and the edges."""
