"""Which files of an archive are slow, from far or from disk; why, and which command makes them fast."""

from hyperslab.audit.distance import Distance
from hyperslab.audit.file_audit import FileAudit
from hyperslab.audit.judging import Question, audit_file

__all__ = ["Distance", "FileAudit", "Question", "audit_file"]
