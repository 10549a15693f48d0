"""What the numbers of an array mean by CF's and netCDF's conventions."""
