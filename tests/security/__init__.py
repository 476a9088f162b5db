"""Attacks on the whole product, each with what must come of it."""
