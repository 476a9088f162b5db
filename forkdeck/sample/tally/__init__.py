"""tally: plain-text invoices, added up to the cent."""

__version__ = "1.4.0"
