"""Repeat the papers' evaluations as experiments, one verdict per published claim."""
