"""A browser for the pages."""

from ..report.opened import browser

__all__ = ["browser"]
