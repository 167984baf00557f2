"""Rules of mrec, one module a topic of the specification."""
