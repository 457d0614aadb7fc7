"""What people do with a crawl beside running it: one module for each operation that is more than a call of a single part.

Place in the flow: above assembly, which puts a crawl together; below the command line and the Python API, which share it.
"""
