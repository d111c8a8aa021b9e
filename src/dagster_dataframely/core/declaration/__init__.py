"""What a schema says: its rules, columns, names and checks, before any row."""
