"""What `dg scaffold defs` writes."""
