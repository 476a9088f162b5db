"""Tests of the rehearsal server, driven by the real SDK over loopback."""
