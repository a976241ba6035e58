"""The MCP server: what agents see of a runtime, and how they reach it."""
