"""The commit: the one place where a visit's consequences become durable."""
