"""The terminal user interface: the application, its keys and commands, and what it draws with.

Owns what a person sees and types. State comes from a deck through its port, live or replayed
alike; what is asked for goes back to it as intents. `screens` hold the screens, `widgets` what
they are made of. Knows no engine, no network and no git.
"""
