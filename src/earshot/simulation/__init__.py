"""The simulator: docs/simulator.md says what it models, `run.run` runs it."""
