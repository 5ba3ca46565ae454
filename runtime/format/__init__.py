"""The contents of a file: operators, contract, certificates, and the nodes around the step."""
