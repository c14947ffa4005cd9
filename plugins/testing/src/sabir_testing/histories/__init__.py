"""Histories to try a dialect on: drawn, recorded, marked; and made-up wires to hand them to."""
