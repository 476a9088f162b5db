"""The state and how it follows from events: hub, reducer, selectors, wrapped rows."""
