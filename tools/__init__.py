"""The workshop: what turns a checkout into a running program, and the chores of its developers.

Nothing in `src/` imports from here, and an installed Gossamer does not have it.
"""
