"""The auditor: what a crawler did, judged from the log of the web that it crawled.

Needs NumPy (the extra `simweb`). `audit` is the way in; `to_text`, `to_json` and `to_svg` show what
it found.
"""

from gossamer.simweb.audit.report import Audit, AuditOptions, audit, to_json, to_svg, to_text

__all__ = ["Audit", "AuditOptions", "audit", "to_json", "to_svg", "to_text"]
