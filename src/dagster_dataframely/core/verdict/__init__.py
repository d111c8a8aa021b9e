"""What a frame gets: which rows fail which rules, and what becomes of them."""
