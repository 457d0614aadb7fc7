"""Assembly: the composition root. The only package that imports concrete parts; it closes the ring that imports never close."""
