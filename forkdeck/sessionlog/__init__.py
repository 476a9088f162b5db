"""The session log on disk: where it lies, how it is written, read, repaired and listed.

Events come in from the hub as they happen and go to ``events.jsonl``, one JSON object a line;
they come out again for a replay, a resume, the session list and an export. The log is only ever
appended to; what is derived from it (``summary.json``) can be rebuilt.
"""
