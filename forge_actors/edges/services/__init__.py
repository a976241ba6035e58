"""Managers of services: what starts ours with the machine, or when it has failed."""
