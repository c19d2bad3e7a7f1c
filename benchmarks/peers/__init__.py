"""What a user would pick instead, side by side, a module for each question; see `__main__`."""
