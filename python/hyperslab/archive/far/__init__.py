"""Bytes that come by URL: stores, their options and credentials, and where documents may lead."""
