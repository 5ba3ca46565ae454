"""The paper's formulas: the Normal distribution, the posterior, its KL, firing, gradient estimators."""
