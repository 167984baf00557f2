"""trajconform: specification and conformance kit for the mrec and otj trajectory formats."""

__version__ = "0.1.0"
