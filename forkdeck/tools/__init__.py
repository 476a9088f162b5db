"""The built-in tools: one file each, with the text the model reads beside it.

Owns the declarations (part of the cached prefix), the argument checks, the caps on what goes to
the model, and the parsing of fork calls. Arguments come from the model by way of the engine's
dispatcher; files and commands are reached through the run's workspace only.
"""
