"""The terminal dashboard of `watch`: a program of its own, on asyncio and textual.

`board` is what is known of the service, `feed` keeps it so, `words` says how a line
reads. They know nothing of the screen; the rest is the screen.
"""
