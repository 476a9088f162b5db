"""The command: ``python3 -m tally [--check] [--width N] FILE``."""

import argparse
import sys

from tally.reader import InvoiceError, read_invoice
from tally.report import check_line, render


def main(argv=None):
    """Print an invoice, or only its check; return the exit code."""
    parser = argparse.ArgumentParser(prog="tally", description="Add up a plain-text invoice.")
    parser.add_argument("file", help="the invoice")
    parser.add_argument("--check", action="store_true", help="print the check line only")
    parser.add_argument("--width", type=int, default=80, help="columns of the page")
    options = parser.parse_args(argv)
    try:
        invoice = read_invoice(options.file)
    except (OSError, InvoiceError) as error:
        print(f"tally: {error}", file=sys.stderr)
        return 2
    if not options.check:
        print(render(invoice, width=options.width))
        return 0
    line = check_line(invoice)
    print(line)
    return 0 if line == "check: ok" else 1


if __name__ == "__main__":
    sys.exit(main())
