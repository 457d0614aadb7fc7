"""One file for each verb of `./gossamer dev`; tools/__main__.py finds them."""
