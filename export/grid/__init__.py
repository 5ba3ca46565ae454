"""The sum-exact grid: what can reach a synapse, and how fine its weights may be."""
