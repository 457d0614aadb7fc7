"""The tables that ship, one file each, and the catalog that finds them and those of other packages by name."""
