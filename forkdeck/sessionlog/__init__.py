"""The session log on disk."""
