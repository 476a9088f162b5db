"""Foreign transcripts; none yet."""
