"""Typed attributes: how YAML is read, and how a mistake in it is told."""
