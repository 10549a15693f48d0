"""Bytes that a program gives: memory, open files, other libraries' stores, tables of references, ZIP files."""
