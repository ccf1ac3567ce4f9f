"""Tests of the lowering: what a program is lowered to."""
