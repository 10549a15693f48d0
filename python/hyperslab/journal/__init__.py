"""Overwriting a file so that a kill or a power cut leaves all of the old bytes or all of the new ones."""
