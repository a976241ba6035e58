"""The clean-up program: what it visits in a home, and how it removes what may go."""
