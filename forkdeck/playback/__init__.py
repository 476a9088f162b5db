"""Replay: a recorded session as a deck of its own, with transport keys.

Events come from a log as a list; states go out through the same kind of hub as
in a live session, so the user interface cannot tell them apart but for what it may ask.
"""
