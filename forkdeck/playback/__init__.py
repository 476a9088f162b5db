"""The replay deck."""
