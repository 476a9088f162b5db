"""Cents: parsing, formatting, percentages, and sharing an amount.

Money is an int of cents, everywhere. There is no float in this file, and none may come in: a
float that was a cent off by the tenth digit is a cent off on paper after enough lines. The
rules are written down, with examples, in docs/rounding.md.
"""

CENTS = 100


class AmountError(ValueError):
    """A text that is no amount of money."""


def parse_amount(text):
    """Return the cents in a text such as ``12``, ``12.5``, ``-12.50``.

    A comma, a currency sign or a third digit behind the dot is an error: it is better to stop
    than to guess.

    Raises:
        AmountError: The text is no amount.
    """
    sign = -1 if text.startswith("-") else 1
    digits = text[1:] if sign < 0 else text
    whole, dot, part = digits.partition(".")
    if not whole.isdigit() or not whole.isascii():
        raise AmountError(f"{text!r} is no amount of money")
    if not dot:
        return sign * int(whole) * CENTS
    if not part.isdigit() or not part.isascii() or len(part) > 2:
        raise AmountError(f"{text!r} needs one or two digits behind the dot")
    return sign * (int(whole) * CENTS + int(part.ljust(2, "0")))


def format_amount(cents):
    """Return cents as a text with two digits behind the dot: ``-12.05`` for -1205."""
    sign = "-" if cents < 0 else ""
    whole, part = divmod(abs(cents), CENTS)
    return f"{sign}{whole}.{part:02d}"


def percent(cents, rate):
    """Return `rate` percent of an amount, rounded half up.

    `rate` is a whole number of percent. A negative amount is rounded like the positive one,
    so that a credit note cancels its invoice.
    """
    if cents < 0:
        return -percent(-cents, rate)
    return (cents * rate + CENTS // 2) // CENTS


def split(amount, weights):
    """Share an amount in proportion to weights; the parts add up to the amount.

    Every part is rounded down first. The cents that are left over then go to the first parts,
    one each.

    Args:
        amount: Cents; may be negative.
        weights: Whole numbers from 0 on, at least one.

    Raises:
        ValueError: There are no weights, or a negative one.
    """
    if not weights:
        raise ValueError("an amount cannot be shared among nobody")
    if min(weights) < 0:
        raise ValueError("a weight cannot be negative")
    if amount < 0:
        return [-part for part in split(-amount, weights)]
    whole = sum(weights)
    if whole == 0:
        return [amount] + [0] * (len(weights) - 1)
    parts = [amount * weight // whole for weight in weights]
    left = amount - sum(parts)
    for index in range(1, left):
        parts[index] += 1
    return parts


def average(cents, count):
    """Return the average of an amount over `count` things, rounded half up.

    For statistics only. Never bill an average: it does not add up. Use `split`.
    """
    if count <= 0:
        raise ValueError("an average needs at least one thing")
    if cents < 0:
        return -average(-cents, count)
    return (2 * cents + count) // (2 * count)
