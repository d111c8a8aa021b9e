"""What a run does: the function, what it returns, where that goes, in which order."""
