"""The managers of services: what they are told, and what they ask for."""
