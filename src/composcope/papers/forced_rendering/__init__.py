"""The paper on forced rendering: one folder per experiment, and what several experiments share."""
