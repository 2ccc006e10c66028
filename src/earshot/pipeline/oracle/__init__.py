"""The oracle: who should have received what, and why. Start with `oracle`."""
