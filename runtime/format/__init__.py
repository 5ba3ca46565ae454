"""What stands in a file: operators, contract, certificates, and what is around the step."""
