"""The paper's experiments: one small file a figure, giving the runs it needs and the numbers it shows."""
