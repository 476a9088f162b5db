"""Worktrees of write forks: snapshot, create, save, diff, apply, undo, remove, sweep, watch.

It takes handles from the engine and the project's directory from the command line; it gives back
leases, saved work, diffs and what an apply did (`forkdeck.model.work`). Work stands in hidden
refs of the project's repository; directories stand below the state directory.
"""
