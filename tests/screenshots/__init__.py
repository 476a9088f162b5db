"""Draws ``screenshots/`` from saved sessions: ``make screenshots``. Not collected as tests."""
