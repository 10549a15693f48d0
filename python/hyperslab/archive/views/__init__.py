"""What people see of an archive: text, and HTML in notebooks."""
