"""ForkDeck: a terminal workspace to supervise a model's parallel forks.

Holds the version and nothing else: every import of the package runs this file.
"""

__version__ = "0.1.0"
