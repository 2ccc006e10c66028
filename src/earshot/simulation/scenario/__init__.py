"""Scenarios: nodes, mobility, medium, faults, workload and duration as one value. Start with `scenario`."""
