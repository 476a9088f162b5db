"""The screens: start, deck, diff, cost, help, palette, sessions, trust, dialogs, errors.

Owns what is on the terminal and what keys mean there. Data comes from the deck (state) and the
deck factory (sessions, facts); what the person asks for goes to the deck as intents.
"""
