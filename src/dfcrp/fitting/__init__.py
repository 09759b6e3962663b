"""From items and settings to a posterior: ``dfcrp.fit`` and ``dfcrp.resume``."""

from dfcrp.fitting.api import fit, resume

__all__ = ["fit", "resume"]
