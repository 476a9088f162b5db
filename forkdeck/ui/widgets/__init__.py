"""The drawing parts of the deck: panes, the board, lines, facts, diffs and the timeline.

Owns how deck state looks in cells. Data comes from the reduced state through ``update_state``
calls of the screens; it goes to the terminal through Textual's line API. No widget here keeps
facts of its own beyond scroll, folds and the last thing it was shown.
"""
