"""The permanent audit: faults planted at both ends of the pipeline and in its middle, and who catches each."""
