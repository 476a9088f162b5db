"""Seed policies and requests."""
