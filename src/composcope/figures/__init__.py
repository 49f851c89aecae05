"""Numbers -> pictures; one file a figure. Nothing here trains or measures."""
