"""Files in: readers of marking lists, one per format, behind `read_markings`."""

from dfcrp.io.reading import read_markings

__all__ = ["read_markings"]
