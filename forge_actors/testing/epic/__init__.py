"""Helpers for tests of EPIC runs: fakes of its ports, and what every real one keeps."""
