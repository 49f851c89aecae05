"""The paper from one command: what to run, which pictures to draw, which claims to judge."""
