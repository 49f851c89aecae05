"""A study as a value: which runs, which figures, which claims, and how they are judged. Knows no paper."""
