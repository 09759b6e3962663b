"""Files in and out, one module per format behind one registry."""

from dfcrp.io.converting import read_table, write_table
from dfcrp.io.reading import read_items, read_markings

__all__ = ["read_items", "read_markings", "read_table", "write_table"]
