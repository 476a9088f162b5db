"""The benchmark: measures what is promised, against a floor taken in the same run.

Run as ``python -m tests.bench [NAME…]``. Data comes from the installed ``forkdeck`` command in a
terminal of its own, from decks opened in a child process against the rehearsal model in another,
and from ``/proc``; it goes to a table and to one JSON line per figure on standard output. No test
collects anything here.
"""
