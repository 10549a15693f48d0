"""Versions that come from other files, or go to them: import of files, and what another file lacks."""
