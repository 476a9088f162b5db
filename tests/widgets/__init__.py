"""Tests of the drawing parts: rows, panes, board, lines, facts, themes."""
