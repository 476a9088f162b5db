"""Endpoints of the Messages API."""
