"""The live deck: the parent's conversation, its forks, their tools, limits and reports.

It takes intents from a user interface and events from a provider, tools and worktrees, and turns
both into events that it hands to the hub. It keeps only what runs now; all it knows of the past
it reads from the folded state.
"""
