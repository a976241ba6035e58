"""Reads issues of GitHub, over HTTP."""
