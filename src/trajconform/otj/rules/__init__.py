"""The rules of otj, a module per topic; importing this package registers them all."""

from trajconform.otj.book import BOOK
from trajconform.otj.rules import checksum, flags, frame, header

__all__ = ["BOOK", "checksum", "flags", "frame", "header"]
