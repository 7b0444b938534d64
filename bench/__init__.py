"""Benchmarks: every figure is a ratio, inside one run, against a baseline that does the same work another way.

``python -m bench`` runs them all and writes the table of docs/performance.md; ``python -m bench ROW`` runs one.
"""
