"""Amounts written out by hand; a test that computes its own expectation proves nothing."""

import unittest

from tally.money import AmountError, average, format_amount, parse_amount, percent, split


class AmountTest(unittest.TestCase):
    def test_amounts_are_cents(self):
        self.assertEqual(parse_amount("12"), 1200)
        self.assertEqual(parse_amount("12.5"), 1250)
        self.assertEqual(parse_amount("-0.05"), -5)

    def test_what_is_no_amount_is_refused(self):
        for text in ("", "-", "1,200.00", "12.505", "12.", "€5", "1e3", "٣"):
            with self.subTest(text=text), self.assertRaises(AmountError):
                parse_amount(text)

    def test_formatting_keeps_two_digits(self):
        self.assertEqual(format_amount(5), "0.05")
        self.assertEqual(format_amount(-1205), "-12.05")


class PercentTest(unittest.TestCase):
    def test_half_a_cent_goes_up(self):
        self.assertEqual(percent(115, 7), 8)
        self.assertEqual(percent(250, 1), 3)

    def test_a_credit_note_mirrors_its_invoice(self):
        self.assertEqual(percent(-250, 1), -3)


class SplitTest(unittest.TestCase):
    def test_even_parts(self):
        self.assertEqual(split(900, [1, 1, 1]), [300, 300, 300])

    def test_parts_follow_their_weights(self):
        self.assertEqual(split(1000, [3, 1, 1]), [600, 200, 200])

    def test_spare_cents_go_to_the_first_parts(self):
        self.assertEqual(split(1000, [1, 1, 1]), [334, 333, 333])

    def test_without_weights_the_first_part_gets_all(self):
        self.assertEqual(split(700, [0, 0]), [700, 0])

    def test_nobody_and_negative_weights_are_refused(self):
        for weights in ([], [1, -1]):
            with self.subTest(weights=weights), self.assertRaises(ValueError):
                split(100, weights)


class AverageTest(unittest.TestCase):
    def test_half_a_cent_goes_up(self):
        self.assertEqual(average(5, 2), 3)
        self.assertEqual(average(-5, 2), -3)


if __name__ == "__main__":
    unittest.main()
