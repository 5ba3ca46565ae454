"""Independent jobs with names: in this process, in several on this machine, or on a Dask cluster. Never needs torch."""
