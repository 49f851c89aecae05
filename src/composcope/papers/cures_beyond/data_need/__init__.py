"""How many combinations must be shown, with two, three and four factors, alone or with single-factor data."""
