"""What a run asks with: seed policies, the request head, cache marks, the directive.

Pure functions over a run's history, called by the engine before a request is sent. Data comes
from the folded state (histories) and goes into request bodies; nothing here does I/O but
reading the package's own texts.
"""
