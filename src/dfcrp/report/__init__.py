"""The report: figures and one self-contained page that is read from top to bottom."""

from dfcrp.report.overview import write_image, write_overview
from dfcrp.report.write import write_report

__all__ = ["write_image", "write_overview", "write_report"]
