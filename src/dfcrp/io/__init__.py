"""Files in and out, one module per format behind one registry."""

from dfcrp.io.converting import read_records, write_records
from dfcrp.io.reading import read_markings

__all__ = ["read_markings", "read_records", "write_records"]
