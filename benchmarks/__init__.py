"""How fast is it, in ratios: `python -m benchmarks`. README.md explains the rows."""
