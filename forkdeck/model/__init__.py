"""The vocabulary: ids, events, state, intents, usage, canonical prefix bytes and ports.

Everything else speaks in these words. Uses the standard library and msgspec only, does no
I/O, and knows no other package of ForkDeck but ``errors``.
"""
