import unittest

from tally.reader import InvoiceError, parse_invoice

GOOD = """
invoice  7
customer  Harbour Bakery
# quantity price tax text
line 3 12.50 20 Rye flour, 10 kg
discount 1.50 Spring offer
"""


class ReaderTest(unittest.TestCase):
    def test_a_whole_invoice(self):
        invoice = parse_invoice(GOOD)
        self.assertEqual((invoice.number, invoice.customer), ("7", "Harbour Bakery"))
        self.assertEqual(invoice.lines[0].text, "Rye flour, 10 kg")
        self.assertEqual((invoice.net(), invoice.discount), (3750, 150))
        self.assertEqual(invoice.discount_text, "Spring offer")

    def test_errors_name_the_line(self):
        cases = {
            "line 1 2 20 x": "line 1: an invoice begins",
            "invoice 1\nline 1 2,00 20 x": "line 2: '2,00' is no amount",
            "invoice 1\nline 1 2.00 x": "line 2: a line needs",
            "invoice 1\ninvoice 2": "line 2: a second invoice",
            "invoice 1\nmagic 3": "line 2: unknown word",
            "": "no invoice",
        }
        for text, words in cases.items():
            with self.subTest(text=text), self.assertRaisesRegex(InvoiceError, words):
                parse_invoice(text)

    def test_a_discount_larger_than_the_invoice_is_refused(self):
        with self.assertRaisesRegex(InvoiceError, "larger"):
            parse_invoice("invoice 1\nline 1 2.00 20 x\ndiscount 2.01 y")


if __name__ == "__main__":
    unittest.main()
