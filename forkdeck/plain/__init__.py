"""The faces without a screen: progress as plain lines, and events as JSON lines.

Fed with every event of a hub and the state behind it; write to a function they are given. For
pipes, scripts and screen readers.
"""
