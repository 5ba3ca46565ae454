"""Events: the one array type, and their form in pipes and datagrams."""
