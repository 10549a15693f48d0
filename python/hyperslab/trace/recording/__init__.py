"""What runs inside the program that is recorded. It imports nothing of hyperslab, so that any Python can load it.

`start/sitecustomize.py` loads this package under another name into programs that `hyperslab trace` starts. Imports
inside it are relative.
"""
