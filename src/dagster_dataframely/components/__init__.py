"""The YAML front: component types whose attributes declare what `dd.asset` declares in Python."""
