"""Settings with their origins, permission rules, trust and the project's own texts.

Data comes from TOML files, the environment and flags, and goes to whoever composes a session as
frozen values. Nothing here talks to a model, runs a command or follows a link out of a project.
"""
