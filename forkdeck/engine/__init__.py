"""The live deck."""
