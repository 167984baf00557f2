"""Reads the specification itself: the chapters under ``spec/`` are the one list of clauses."""
