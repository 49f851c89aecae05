"""Papers as studies: one folder per paper."""
