"""What a file promises, done again in the plainest way: neither the exporter's code nor the engines' is asked."""
