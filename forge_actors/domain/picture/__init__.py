"""How a timeline looks: as a page, as a trace, and what words and marks stand for."""
