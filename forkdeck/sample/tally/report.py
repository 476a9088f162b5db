"""The printout: a page of text with the totals and the check line at its foot."""

from tally.money import format_amount

AMOUNT = 12


def render(invoice, width=80):
    """Return an invoice as a page of text, `width` columns wide (40 at least)."""
    width = max(width, 40)
    totals = invoice.totals()
    page = [f"Invoice {invoice.number}", invoice.customer, invoice.date]
    page = [text for text in page if text] + ["-" * width]
    page += [_row(_line_text(line), line.net, width) for line in invoice.lines]
    page.append("-" * width)
    page.append(_row("Net", totals.net, width))
    if totals.discount:
        page.append(_row(invoice.discount_text or "Discount", -totals.discount, width))
    for entry in totals.taxes:
        page.append(_row(f"Tax {entry.rate} % on {format_amount(entry.base)}", entry.tax, width))
    page.append(_row(f"Total {invoice.currency}", totals.gross, width))
    page.append(check_line(invoice))
    return "\n".join(page)


def check_line(invoice):
    """Return ``check: ok``, or by how much the lines miss the total."""
    difference = invoice.difference()
    if not difference:
        return "check: ok"
    return f"check: the lines are off by {format_amount(difference)}"


def _line_text(line):
    return f"{line.quantity} x {format_amount(line.price)}  {line.text}"


def _row(text, cents, width):
    room = width - AMOUNT - 1
    shown = text if len(text) <= room else text[: room - 1] + "…"
    return f"{shown:<{room}} {format_amount(cents):>{AMOUNT}}"
