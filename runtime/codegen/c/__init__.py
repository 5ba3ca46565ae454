"""Write a network as C: the native core's own kernels, and the network as constants."""
