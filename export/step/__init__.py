"""One time step of a collapsed network as a flat list of torch operators."""
