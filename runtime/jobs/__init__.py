"""Run independent, named jobs in this process, in several processes, or on a Dask cluster; torch is not needed."""
