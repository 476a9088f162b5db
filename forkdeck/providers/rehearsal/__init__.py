"""The rehearsal server: a Messages API on 127.0.0.1 that answers from a scenario, offline.

Owns its own HTTP, its own model of the prompt cache and its own request checks, so that it is
a second opinion on the requests the engine builds. Requests come from the SDK over loopback;
scenarios come from TOML files; answers leave as HTTP and SSE, and every request stays in the
journal. Nothing here reaches another host.
"""
