"""A browser for the pages."""

from .opened import browser

__all__ = ["browser"]
