"""An invoice: its lines, its discount, and the totals by tax rate.

Amounts are cents (see tally.money). Nothing here rounds or shares by itself: percentages and
shares come from tally.money, so that there is one place to look at when a cent is missing.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from tally.money import percent, split


@dataclass(frozen=True)
class Line:
    """One line: so many pieces at a price, with a tax rate in percent."""

    quantity: int
    price: int
    rate: int
    text: str

    @property
    def net(self):
        """What the line costs before discount and tax, in cents."""
        return self.quantity * self.price


@dataclass(frozen=True)
class TaxBase:
    """What is taxed at one rate, and the tax on it."""

    rate: int
    base: int
    tax: int


@dataclass(frozen=True)
class Totals:
    """The sums at the foot of an invoice, in cents.

    `net` is before the discount; `gross` is what the customer pays.
    """

    net: int
    discount: int
    taxes: tuple
    gross: int

    @property
    def tax(self):
        """All taxes together."""
        return sum(entry.tax for entry in self.taxes)


@dataclass
class Invoice:
    """A whole invoice. `discount` is a net amount, shared over the lines."""

    number: str
    customer: str = ""
    date: str = ""
    currency: str = "EUR"
    lines: list = field(default_factory=list)
    discount: int = 0
    discount_text: str = ""

    def net(self):
        """The sum of all lines before the discount."""
        return sum(line.net for line in self.lines)

    def discount_shares(self):
        """How much of the discount each line bears, in the order of the lines.

        The weights are the net prices, so that a line of a third of the invoice bears a third
        of the discount. Lines of a credit note count with their size, not their sign.
        """
        if not self.lines:
            return []
        if not self.discount:
            return [0] * len(self.lines)
        return split(self.discount, [abs(line.net) for line in self.lines])

    def line_bases(self):
        """What each line costs after its share of the discount."""
        shares = self.discount_shares()
        return [line.net - share for line, share in zip(self.lines, shares)]

    def tax_bases(self):
        """The taxed sum and the tax of each rate, the highest rate first.

        A tax is computed once for a rate, on the sum of its lines.
        """
        sums = OrderedDict()
        for line, base in zip(self.lines, self.line_bases()):
            sums[line.rate] = sums.get(line.rate, 0) + base
        rates = sorted(sums, reverse=True)
        return tuple(TaxBase(rate, sums[rate], percent(sums[rate], rate)) for rate in rates)

    def totals(self):
        """The sums at the foot of the invoice."""
        net = self.net()
        taxes = self.tax_bases()
        gross = net - self.discount + sum(entry.tax for entry in taxes)
        return Totals(net=net, discount=self.discount, taxes=taxes, gross=gross)

    def difference(self):
        """Cents by which the lines, after discount, miss the net total less the discount.

        It is 0 on every invoice, or there is a bug in the sharing.
        """
        return sum(self.line_bases()) - (self.net() - self.discount)
