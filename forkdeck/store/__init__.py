"""The store: the hub, the reducer, the selectors, and text made safe to show.

Events come in from the engine or a replay, go to the log first and are then folded into a
`DeckState`; the user interface and the plain faces read that state through the selectors.
Everything here is pure but the hub. Knows no terminal, no network, no git and no file.
"""
