"""The outside, each piece behind a port of the domain. Edges never import each other."""
