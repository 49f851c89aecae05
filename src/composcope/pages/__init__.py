"""Pages to look at: each a single HTML file that opens offline and asks for nothing else."""
