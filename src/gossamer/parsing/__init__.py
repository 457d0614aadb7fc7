"""Process: every document passes the processors of its MIME type; what they find fills the visit.

A processor is one class behind `contracts.processing.Processor`; the component asks them one after the other.
"""
