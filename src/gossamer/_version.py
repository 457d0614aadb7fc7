"""The version, in one place: read by the package, the build and the user agent."""

__version__ = "0.2.0"
