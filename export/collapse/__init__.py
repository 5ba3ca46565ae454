"""From a posterior to constant weights: the collapsed network, its layers and operators."""
