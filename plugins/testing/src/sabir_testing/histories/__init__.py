"""Histories to try a dialect on: drawn and recorded; and made-up wires to hand them to."""
