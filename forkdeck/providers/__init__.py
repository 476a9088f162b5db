"""Endpoints of the Messages API: credentials, streaming, errors, the gate and prices.

Data comes from the endpoint and the environment, and goes to the engine as stream parts and
classified errors. The only importer of the ``anthropic`` package, and only inside functions,
because it is slow to load. `rehearsal` holds the scripted model behind a loopback server.
"""
