"""The outside, each piece behind a port of the domain; no edge imports another."""
