"""From draws to answers: pairs, point partition, consensus, experts, catalogue, convergence."""
