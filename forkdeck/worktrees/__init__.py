"""Worktrees of write forks."""
