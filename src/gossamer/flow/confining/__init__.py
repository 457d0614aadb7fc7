"""A process that works on what strangers wrote shuts itself in: no files, no network, no further processes, and so much of the
machine.

Place in the flow: a process of ours calls :func:`~gossamer.flow.confining.walls.confine` when it has imported all that it
needs, and keeps only the pipe to its parent. Each layer holds alone, since a kernel or a container may lack any of them
(decision 83).
"""
