"""Chaos: real jobs in real repositories, while service and agent are killed.

What happened is counted from what the jobs wrote themselves, outside of the home, and
compared with what the service says.
"""
