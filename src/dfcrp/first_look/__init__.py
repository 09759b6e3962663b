"""A look at the data before sampling."""

from dfcrp.first_look.finding import Finding
from dfcrp.first_look.look import first_look

__all__ = ["Finding", "first_look"]
