"""What all tests share."""

from hypothesis import settings

# A timing never fails a test: machines are busy at times.
settings.register_profile("hyperslab", deadline=None)
settings.load_profile("hyperslab")
