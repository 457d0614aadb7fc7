"""The command line: one file for each command. The only place that prints to people and decides exit codes."""
