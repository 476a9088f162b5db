"""The text format: one invoice per file, errors that name the line."""

from pathlib import Path

from tally.invoice import Invoice, Line
from tally.money import AmountError, parse_amount

HEADER = ("customer", "date", "currency")


class InvoiceError(ValueError):
    """A file that is no invoice; the message names the line."""


def read_invoice(path):
    """Read the invoice in a file.

    Raises:
        InvoiceError: It is no invoice.
        OSError: It cannot be read.
    """
    return parse_invoice(Path(path).read_text(encoding="utf-8"))


def parse_invoice(text):
    """Return the invoice in a text.

    Raises:
        InvoiceError: It is no invoice.
    """
    invoice = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        key, _, rest = words.partition(" ")
        rest = rest.strip()
        if key == "invoice":
            if invoice is not None:
                raise InvoiceError(f"line {number}: a second invoice begins here")
            invoice = Invoice(number=rest)
        elif invoice is None:
            raise InvoiceError(f"line {number}: an invoice begins with its number")
        else:
            _take(invoice, key, rest, number)
    if invoice is None:
        raise InvoiceError("there is no invoice in this text")
    if abs(invoice.discount) > abs(invoice.net()):
        raise InvoiceError("the discount is larger than the invoice")
    return invoice


def _take(invoice, key, rest, number):
    try:
        if key == "line":
            invoice.lines.append(_line(rest))
        elif key == "discount":
            if invoice.discount:
                raise InvoiceError("there is a discount already")
            amount, _, text = rest.partition(" ")
            invoice.discount = parse_amount(amount)
            invoice.discount_text = text.strip()
        elif key in HEADER:
            setattr(invoice, key, rest)
        else:
            raise InvoiceError(f"unknown word {key!r}")
    except (AmountError, InvoiceError) as error:
        raise InvoiceError(f"line {number}: {error}") from error


def _line(rest):
    words = rest.split(None, 3)
    if len(words) < 4:
        raise InvoiceError("a line needs quantity, price, tax rate and text")
    quantity, price, rate, text = words
    if not quantity.lstrip("-").isdigit():
        raise InvoiceError(f"{quantity!r} is no whole quantity")
    if not rate.isdigit() or int(rate) > 100:
        raise InvoiceError(f"{rate!r} is no tax rate in percent")
    return Line(int(quantity), parse_amount(price), int(rate), text)
