"""The event array type, and its form in pipes and datagrams."""
