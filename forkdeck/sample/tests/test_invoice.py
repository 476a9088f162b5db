import unittest

from tally.invoice import Invoice, Line, TaxBase


class InvoiceTest(unittest.TestCase):
    def setUp(self):
        self.invoice = Invoice(number="1")
        self.invoice.lines = [Line(2, 1000, 20, "flour"), Line(1, 2000, 7, "yeast")]

    def test_totals_without_a_discount(self):
        totals = self.invoice.totals()
        self.assertEqual(totals.net, 4000)
        self.assertEqual(totals.taxes, (TaxBase(20, 2000, 400), TaxBase(7, 2000, 140)))
        self.assertEqual(totals.gross, 4540)

    def test_a_discount_is_shared_over_the_rates(self):
        self.invoice.discount = 400
        totals = self.invoice.totals()
        self.assertEqual([entry.base for entry in totals.taxes], [1800, 1800])
        self.assertEqual(totals.gross, 3600 + 360 + 126)
        self.assertEqual(self.invoice.difference(), 0)

    def test_an_empty_invoice_costs_nothing(self):
        self.assertEqual(Invoice(number="2").totals().gross, 0)


if __name__ == "__main__":
    unittest.main()
