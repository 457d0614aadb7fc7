"""Reading documents: from the bytes of a body to its type, charset, links, text and fingerprints.

Place in the flow: above the values, below the seams. Everything here is plain code over bytes, without I/O or event loop;
processors, filters and commands share it.
"""
